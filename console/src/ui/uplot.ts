// The charts' library, in a file of its own that is loaded when it is used.

export { default } from 'uplot';
