// Addresses of the server. The page may have been opened with an access token, which every request
// then carries, too.

const token = new URLSearchParams(location.search).get('token') ?? '';

/** Whether the page was opened with an access token. */
export const hasToken = token !== '';

/** The address with the page's access token, if it has one. */
export function withToken(address: string): string {
  if (!hasToken) return address;
  const joint = address.includes('?') ? '&' : '?';
  return `${address}${joint}token=${encodeURIComponent(token)}`;
}

/** The address of what players fetch of a title; `rest` is already encoded. */
export function playerAddress(title: string, rest: string): string {
  return `/t/${encodeURIComponent(title)}/${rest}`;
}

/** The address of a title on a disk in the admin API. */
export function storedTitleAddress(disk: string, title: string): string {
  return `/api/v1/disks/${encodeURIComponent(disk)}/titles/${encodeURIComponent(title)}`;
}
