/** The browser's storages, which may be missing, full or forbidden. */

/** localStorage itself, or null: reading the property alone can throw. */
export function rawLocalStorage() {
  try {
    return globalThis.localStorage ?? null;
  } catch {
    return null;
  }
}

/**
 * A small text store for conveniences (drafts, switches); what can't be kept is simply not there next time.
 */
export function localStore() {
  const storage = rawLocalStorage();
  return {
    get(key) {
      try {
        return storage?.getItem(key) ?? null;
      } catch {
        return null;
      }
    },
    set(key, text) {
      try {
        storage?.setItem(key, text);
        return storage !== null;
      } catch {
        return false;
      }
    },
    remove(key) {
      try {
        storage?.removeItem(key);
        return storage !== null;
      } catch {
        return false;
      }
    },
  };
}
