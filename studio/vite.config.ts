import { defineConfig } from "vite";

// The output folder is given by scripts/build_studio.py (--outDir). Files are named by a digest of their content.
export default defineConfig({
  base: "/",
  build: {
    target: "es2022",
    sourcemap: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
  },
});
