// Which page is shown: the fragment of the address.

export type Route =
  | { readonly page: 'now' }
  | { readonly page: 'library' }
  | { readonly page: 'title'; readonly disk: string; readonly title: string }
  /** `query` has the settings of the page, which reads and writes them. */
  | { readonly page: 'what-if'; readonly query: string }
  /** Of a director, which has no other page. */
  | { readonly page: 'cluster' }
  /** Of a meter, which has no other page. */
  | { readonly page: 'measure' };

export function parseRoute(hash: string): Route {
  const address = hash.replace(/^#?\/?/, '');
  const whatIf = /^what-if(?:\?(.*))?$/.exec(address);
  if (whatIf) return { page: 'what-if', query: whatIf[1] ?? '' };
  const parts = address.split('/').map(decode);
  const [page, disk, title] = parts;
  if (page === 'cluster' || page === 'measure') return { page };
  if (page !== 'library') return { page: 'now' };
  return disk && title ? { page: 'title', disk, title } : { page: 'library' };
}

/** The address of a page, for links. */
export function linkTo(route: Route): string {
  if (route.page === 'what-if') return `#/what-if${route.query && `?${route.query}`}`;
  if (route.page !== 'title') return `#/${route.page}`;
  return `#/library/${encodeURIComponent(route.disk)}/${encodeURIComponent(route.title)}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Router {
  current = $state.raw<Route>(parseRoute(location.hash));

  start(): () => void {
    const update = () => {
      this.current = parseRoute(location.hash);
    };
    addEventListener('hashchange', update);
    return () => removeEventListener('hashchange', update);
  }
}

export const router = new Router();
