import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The server whose data `npm run dev` and `npm run preview` show.
const server = process.env['TENUTO_SERVER'] ?? 'http://127.0.0.1:8080';
const proxied = ['/api', '/healthz', '/status', '/t', '/titles'];
// The policy that the program sends with the page.
const policy =
  "default-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; " +
  "worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const proxy = Object.fromEntries(proxied.map((path) => [path, { target: server }]));

export default defineConfig({
  base: '/console/',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // The content-security policy has no `data:` for scripts and styles, and the program serves
    // files as cheaply as one long file.
    assetsInlineLimit: 0,
    // The player is large, and loaded only when it is used.
    chunkSizeWarningLimit: 700,
  },
  server: { proxy },
  preview: { proxy, headers: { 'Content-Security-Policy': policy } },
});
