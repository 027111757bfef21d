// The colours of the style sheet, for drawings on a canvas.

import { createSubscriber } from 'svelte/reactivity';
import { theme } from '../theme.svelte';

const systemTheme = matchMedia('(prefers-color-scheme: dark)');
const subscribe = createSubscriber((update) => {
  systemTheme.addEventListener('change', update);
  return () => systemTheme.removeEventListener('change', update);
});

/**
 * The present value of a custom property that is a colour. An effect that reads it runs again when
 * light changes to dark.
 */
export function colour(property: `--${string}`): string {
  subscribe();
  void theme.chosen;
  // The property itself may be an expression (`light-dark()`); a colour that uses it is computed.
  const probe = document.createElement('span');
  probe.hidden = true;
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const computed = getComputedStyle(probe).color;
  probe.remove();
  return computed;
}
