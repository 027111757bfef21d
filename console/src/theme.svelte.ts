// Light or dark: as the system says, unless the user has chosen here.

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'tenuto-theme';
const ORDER: readonly Theme[] = ['system', 'light', 'dark'];

class ThemeChoice {
  chosen = $state<Theme>(stored());

  constructor() {
    this.apply();
  }

  next(): void {
    this.chosen = ORDER[(ORDER.indexOf(this.chosen) + 1) % ORDER.length] ?? 'system';
    try {
      localStorage.setItem(KEY, this.chosen);
    } catch {
      // A browser without storage forgets the choice with the page.
    }
    this.apply();
  }

  private apply(): void {
    if (this.chosen === 'system') delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = this.chosen;
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return ORDER.find((theme) => theme === value) ?? 'system';
  } catch {
    return 'system';
  }
}

export const theme = new ThemeChoice();
