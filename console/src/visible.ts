// Work that is done only while somebody sees the page.

/** Begins now and whenever the page is seen again, and halts when it is not. Returns what ends that. */
export function whileVisible(begin: () => void, halt: () => void): () => void {
  const onVisibility = () => {
    if (document.hidden) halt();
    else begin();
  };
  onVisibility();
  document.addEventListener('visibilitychange', onVisibility);
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    halt();
  };
}
