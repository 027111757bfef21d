// The charts' library with its styles, in a file of its own that is loaded when it is used.

import 'uplot/dist/uPlot.min.css';

export { default } from 'uplot';
