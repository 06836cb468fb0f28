// Unpacks the headless Chromium of the npm package, and with "libraries" what it links and the machine lacks; prints the path.
import chromium, { inflate } from "@sparticuz/chromium";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const place = await chromium.executablePath();
if (process.argv[2] === "libraries")
  await inflate(join(fileURLToPath(import.meta.resolve("@sparticuz/chromium")), "..", "..", "bin", "al2023.tar.br"));
console.log(place);
