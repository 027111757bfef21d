import { defineConfig } from 'vite';

// The script of self-contained reports: one classic script in one file, without imports, because a
// page that is opened as a file cannot load modules. It is built after the console, into its folder.
export default defineConfig({
  build: {
    target: 'es2022',
    // Light and dark are the browser's; the script leaves the pictures to one without them.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    emptyOutDir: false,
    copyPublicDir: false,
    lib: { entry: 'src/plots/report.ts', formats: ['iife'], name: 'report', fileName: () => 'report.js' },
  },
});
