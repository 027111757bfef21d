// The script of a self-contained report: draws its plots anew from the data that the page has, in
// place of the fixed pictures. A plot whose data it does not understand keeps its picture, as all
// plots do where scripts are not allowed.

import { parsePlot } from './data';
import { PlotView } from './plot';
import styles from './plots.css?inline';

/** A browser of before 2024 has no `light-dark()`, and without it plots have no colours. */
function drawPlots(): void {
  if (!CSS.supports('color', 'light-dark(red, blue)')) return;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  for (const figure of document.querySelectorAll('figure')) {
    const json = figure.querySelector('script[type="application/json"]')?.textContent ?? '';
    const [data, picture] = [parsePlot(json), figure.querySelector('.wide')];
    if (!data || !picture) continue;
    const holder = document.createElement('div');
    picture.before(holder);
    new PlotView(holder, data);
    picture.remove();
  }
}

drawPlots();
