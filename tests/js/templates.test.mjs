import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

function read(folder, ending) {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .filter((name) => name.endsWith(ending))
    .map((name) => ({ name: join(folder, name), text: readFileSync(join(ROOT, folder, name), "utf8") }));
}

const templates = read("templates", ".html");
const scripts = read("static/js", ".js");
const sprite = readFileSync(join(ROOT, "templates/_icons.html"), "utf8");
const symbols = new Set([...sprite.matchAll(/<symbol id="([^"]+)"/g)].map((match) => match[1]));

test("no page has inline script, inline style or handlers, which the content policy would refuse", () => {
  assert.ok(templates.length > 10);
  for (const { name, text } of templates) {
    assert.equal(/\sstyle\s*=/i.test(text), false, `${name}: style attribute`);
    assert.equal(/<style/i.test(text), false, `${name}: style element`);
    assert.equal(/\son[a-z]+\s*=\s*["']/i.test(text), false, `${name}: handler`);
    for (const [tag] of text.matchAll(/<script[^>]*>/gi)) assert.match(tag, / src="\{[{%] [^"]+ [}%]\}">/, name);
    assert.equal(
      /https?:\/\//i.test(text.replaceAll("http://www.w3.org/2000/svg", "")),
      false,
      `${name}: foreign address`,
    );
  }
});

test("every sign a page uses is drawn", () => {
  for (const { name, text } of templates) {
    for (const [, id] of text.matchAll(/href="#((?:icon|shape)-[a-z-]+|brand)"/g))
      assert.ok(symbols.has(id), `${name}: ${id}`);
  }
});

test("every shape of a chip is drawn", () => {
  const chips = readFileSync(join(ROOT, "videos/messages/chips.py"), "utf8");
  const tones = "neutral|progress|attention|success|failure";
  const shapes = [...chips.matchAll(new RegExp(`Chip\\("(?:${tones})", "([a-z-]+)"`, "g"))].map(
    (match) => match[1],
  );
  assert.ok(shapes.length >= 12);
  for (const shape of shapes) assert.ok(symbols.has(`shape-${shape}`), shape);
});

test("every word a script asks for exists on the page or in the browser's messages", () => {
  const labels = readFileSync(join(ROOT, "templates/videos/_labels.html"), "utf8");
  const messages = readFileSync(join(ROOT, "videos/messages/browser.py"), "utf8");
  const known = new Set([
    ...[...labels.matchAll(/data-key="([a-z_]+)"/g)].map((match) => match[1]),
    ...[...messages.matchAll(/^ {4}"([a-z_]+)":/gm)].map((match) => match[1]),
  ]);
  const asked = new Set();
  for (const { text } of scripts) {
    for (const [, key] of text.matchAll(/(?:\bsay|show|showBriefly|hide)\(\s*"([a-z_]+)"/g)) asked.add(key);
    for (const [, key] of text.matchAll(/\bsay: "([a-z_]+)"/g)) asked.add(key);
    for (const [, key] of text.matchAll(/\bkey: "([a-z_]+)"/g)) asked.add(key);
  }
  asked.delete("date"); // not a word: the date itself
  assert.ok(asked.size > 30);
  assert.deepEqual(
    [...asked].filter((key) => !known.has(key)),
    [],
  );
});

test("every module a script imports exists, so that no bundler is needed", () => {
  const names = new Set(scripts.map(({ name }) => name));
  for (const { name, text } of scripts) {
    for (const [, path] of text.matchAll(/from "(\.[^"]+)"/g))
      assert.ok(names.has(join(name, "..", path)), `${name}: ${path}`);
    assert.equal(/\bfrom "[^.]/.test(text), false, `${name}: foreign module`);
  }
});

test("the rules touch no page, no network and no clock of their own", () => {
  for (const { name, text } of scripts.filter((script) => script.name.includes("rules"))) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
    assert.equal(
      /\b(document|window|fetch|localStorage|setTimeout|Date\.now|Math\.random)\b/.test(code),
      false,
      name,
    );
  }
});
