import { defineConfig } from "vite";

// The notebook widget: one module without further files. The output folder is given by scripts/build_studio.py (--outDir).
export default defineConfig({
  publicDir: false,
  build: {
    target: "es2022",
    sourcemap: false,
    lib: { entry: "src/explorer.tsx", formats: ["es"], fileName: () => "explorer.js" },
  },
});
