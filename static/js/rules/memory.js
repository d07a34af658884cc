/**
 * What this browser remembers of requests it has sent, over any Web-Storage-like object.
 *
 * A record is `{id, owner, body, created_at, tries, acknowledged, abandoning}`. It is written before the
 * request
 * leaves, and dropped only when the request's end is known. A storage that refuses is reported, never
 * ignored:
 * the record then lives in this page alone.
 */

const PREFIX = "oncereel.request.";

/** JSON with sorted keys: equal requests give equal text, whatever the order of their fields. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const fields = Object.keys(value)
      .filter((key) => value[key] !== undefined)
      .sort()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
    return `{${fields.join(",")}}`;
  }
  return JSON.stringify(value ?? null);
}

/** The part of a body that makes two requests the same: everything but the id and the price agreed to. */
export function requestIdentity(body) {
  const { id: _id, max_price: _maxPrice, ...rest } = body;
  return canonicalJson(rest);
}

export class RequestMemory {
  /**
   * @param storage `{length, key, getItem, setItem, removeItem}`, or null when the browser has none to give
   */
  constructor(storage) {
    this.storage = storage;
    this.unstored = new Map(); // records the storage refused
  }

  /**
   * Write a new request down. Call before sending.
   *
   * @returns `{stored}`; false = kept in this page only, and the person must be told
   */
  remember({ id, owner, body, now }) {
    return this.write({ id, owner, body, created_at: now, tries: 0, acknowledged: false, abandoning: false });
  }

  /** Count one POST of the id, before it is sent. Returns the record as it now is, or null when unknown. */
  countTry(owner, id) {
    return this.change(owner, id, (record) => ({ ...record, tries: record.tries + 1 }));
  }

  /** A 2xx for the id has been seen. The body stays until the end is known. */
  acknowledge(owner, id) {
    return this.change(owner, id, (record) => ({ ...record, acknowledged: true }));
  }

  /** The fence has been asked for: this id must not be sent again, whatever is read meanwhile. */
  markAbandoning(owner, id) {
    return this.change(owner, id, (record) => ({ ...record, abandoning: true }));
  }

  /** The request has ended: forget it, body and all. */
  forget(owner, id) {
    const key = keyOf(owner, id);
    this.unstored.delete(key);
    try {
      this.storage?.removeItem(key);
    } catch {
      return { removed: false }; // it is asked about once more after the next load, which costs nothing
    }
    return { removed: true };
  }

  find(owner, id) {
    const key = keyOf(owner, id);
    if (this.unstored.has(key)) return this.unstored.get(key);
    let text = null;
    try {
      text = this.storage?.getItem(key) ?? null;
    } catch {
      return null;
    }
    return text === null ? null : parseRecord(key, text);
  }

  /** All requests of this owner, oldest first. Only these may ever be sent. */
  listOwn(owner) {
    return this.list().filter((record) => record.owner === owner);
  }

  /** How many requests of other owners this browser holds. They are counted, and not touched. */
  countForeign(owner) {
    return this.list().filter((record) => record.owner !== owner).length;
  }

  /** An unfinished request of this owner with the same content, or null. */
  findSame(owner, body) {
    const wanted = requestIdentity(body);
    return (
      this.listOwn(owner).find((record) => record.body && requestIdentity(record.body) === wanted) ?? null
    );
  }

  list() {
    const records = new Map();
    for (const key of this.keys()) {
      const [owner, id] = splitKey(key);
      const record = this.find(owner, id);
      if (record) records.set(key, record);
    }
    for (const [key, record] of this.unstored) records.set(key, record);
    return [...records.values()].sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  }

  keys() {
    const found = [];
    try {
      for (let index = 0; index < (this.storage?.length ?? 0); index += 1) {
        const key = this.storage.key(index);
        if (typeof key === "string" && key.startsWith(PREFIX) && key.includes("/")) found.push(key);
      }
    } catch {
      return found; // what could be listed is used; the server's list has the rest
    }
    return found;
  }

  change(owner, id, update) {
    const record = this.find(owner, id);
    if (!record) return null;
    const changed = update(record);
    this.write(changed);
    return changed;
  }

  write(record) {
    const key = keyOf(record.owner, record.id);
    try {
      if (!this.storage) throw new Error("no storage");
      const text = JSON.stringify(record);
      this.storage.setItem(key, text);
      // Private windows of some browsers accept a write and keep nothing: read it back.
      if (this.storage.getItem(key) !== text) throw new Error("the storage kept nothing");
      this.unstored.delete(key);
      return { stored: true, record };
    } catch {
      this.unstored.set(key, record);
      return { stored: false, record };
    }
  }
}

function keyOf(owner, id) {
  return `${PREFIX}${owner}/${id}`;
}

function splitKey(key) {
  const rest = key.slice(PREFIX.length);
  const slash = rest.indexOf("/");
  return [rest.slice(0, slash), rest.slice(slash + 1)];
}

/** A damaged record still has its owner and id in its key: it is asked about, and never sent. */
function parseRecord(key, text) {
  const [owner, id] = splitKey(key);
  const damaged = { id, owner, body: null, created_at: 0, tries: 1, acknowledged: false, abandoning: false };
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return damaged;
  }
  if (typeof value !== "object" || value === null || value.id !== id || value.owner !== owner) return damaged;
  const bodyIsWhole = typeof value.body === "object" && value.body !== null && value.body.id === id;
  return {
    id,
    owner,
    body: bodyIsWhole ? value.body : null,
    created_at: Number.isFinite(value.created_at) ? value.created_at : 0,
    tries: Number.isInteger(value.tries) && value.tries >= 0 ? value.tries : 1,
    acknowledged: value.acknowledged === true,
    abandoning: value.abandoning === true,
  };
}
