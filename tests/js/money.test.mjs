import assert from "node:assert/strict";
import { test } from "node:test";

import { announcementKey, isTransition, summarise } from "../../static/js/rules/announcements.js";
import { PROMPT_LIMIT, countCodePoints } from "../../static/js/rules/codepoints.js";
import {
  formatAmount,
  formatMoney,
  lowestPrice,
  priceOf,
  toAmount,
  toMicros,
} from "../../static/js/rules/money.js";
import { ago, lasting } from "../../static/js/rules/time.js";

test("amounts are exact both ways", () => {
  assert.equal(toMicros("0.400000"), 400_000n);
  assert.equal(toMicros("0.000001"), 1n);
  assert.equal(toMicros("9007199254740993.000001"), 9_007_199_254_740_993_000_001n);
  assert.equal(toMicros("-1.5"), -1_500_000n);
  for (const micros of [0n, 1n, -1n, 400_000n, 10n ** 20n + 7n])
    assert.equal(toMicros(toAmount(micros)), micros);
  let total = 0n;
  for (let n = 0; n < 10_000; n += 1) total += toMicros("0.07");
  assert.equal(toAmount(total), "700.000000");
});

test("what is no amount is refused, floats among it", () => {
  for (const value of [
    0.4,
    1n,
    null,
    undefined,
    "",
    "1e3",
    "NaN",
    "0.0000001",
    "1,000.00",
    " 1",
    "+1",
    ".5",
    "1.",
  ]) {
    assert.throws(() => toMicros(value), RangeError);
  }
});

test("amounts for people have two to six decimals and grouped thousands", () => {
  assert.equal(formatAmount(400_000n), "0.40");
  assert.equal(formatAmount(0n), "0.00");
  assert.equal(formatAmount(123_456n), "0.123456");
  assert.equal(formatAmount(123_000n), "0.123");
  assert.equal(formatAmount(1n), "0.000001");
  assert.equal(formatAmount(1_234_567_000_000n), "1,234,567.00");
  assert.equal(formatAmount(-1_234_500_000n), "-1,234.50");
  assert.equal(formatAmount(-123_456_000_000n), "-123,456.00");
  assert.equal(formatMoney(400_000n, "USDC"), "0.40\u00a0USDC");
});

test("a price is found by seconds, resolution and audio, and a missing one is not made up", () => {
  const model = {
    prices: [
      { seconds: 4, resolution: "720p", audio: true, price: "0.800000" },
      { seconds: 4, resolution: "720p", audio: false, price: "0.400000" },
      { seconds: 8, resolution: "720p", audio: null, price: "1.200000" },
    ],
  };
  assert.equal(priceOf(model, { seconds: 4, resolution: "720p", audio: false }), 400_000n);
  assert.equal(priceOf(model, { seconds: 8, resolution: "720p", audio: true }), 1_200_000n);
  assert.equal(priceOf(model, { seconds: 8, resolution: "1080p", audio: true }), null);
  assert.equal(lowestPrice(model), 400_000n);
  assert.equal(lowestPrice({ prices: [] }), null);
});

test("the prompt counter counts code points, as the server does", () => {
  assert.equal(PROMPT_LIMIT, 4000);
  assert.equal(countCodePoints(""), 0);
  assert.equal(countCodePoints("灯塔"), 2);
  assert.equal(countCodePoints("🎬a"), 2);
  assert.equal(countCodePoints("👩‍🚀"), 3);
  assert.equal(countCodePoints("\ud83c"), 1);
  assert.equal(countCodePoints("🎬".repeat(4000)), 4000);
});

test("how long ago is said by minutes, hours, days, then by date, and the future reads as now", () => {
  const now = 1_800_000_000_000;
  const at = (seconds) => ago(now - seconds * 1000, now);
  assert.deepEqual(at(59), { key: "just_now", n: 0 });
  assert.deepEqual(at(60), { key: "minutes_ago", n: 1 });
  assert.deepEqual(at(3599), { key: "minutes_ago", n: 59 });
  assert.deepEqual(at(7200), { key: "hours_ago", n: 2 });
  assert.deepEqual(at(86_400), { key: "day_ago", n: 1 });
  assert.deepEqual(at(3 * 86_400), { key: "days_ago", n: 3 });
  assert.deepEqual(at(7 * 86_400), { key: "date", n: 0 });
  assert.deepEqual(at(-500), { key: "just_now", n: 0 });
  assert.deepEqual(lasting(60), { key: "minutes", n: 1 });
  assert.deepEqual(lasting(61), { key: "seconds", n: 61 });
  assert.deepEqual(lasting(180), { key: "minutes", n: 3 });
  assert.deepEqual(lasting(7199), { key: "minutes", n: 119 });
  assert.deepEqual(lasting(7200), { key: "hours", n: 2 });
  assert.deepEqual(lasting(-1), { key: "seconds", n: 0 });
});

test("tasks that end together are announced as one sentence, and progress never is", () => {
  const ready = { id: "a", state: "completed", charge: { refunded: "0.000000" } };
  const failed = { id: "b", state: "failed", charge: { refunded: "0.400000" } };
  const refused = { id: "c", state: "failed", charge: { refunded: "0.000000" } };
  assert.deepEqual(summarise([ready, ready, failed]), { ready: 2, failed: 1, returnedMicros: 400_000n });
  assert.equal(announcementKey(summarise([ready])), "one_ready");
  assert.equal(announcementKey(summarise([ready, ready])), "many_ready");
  assert.equal(announcementKey(summarise([ready, failed])), "ready_and_failed_returned");
  assert.equal(announcementKey(summarise([ready, refused])), "ready_and_failed");
  assert.equal(announcementKey(summarise([failed])), "only_failed_returned");
  assert.equal(announcementKey(summarise([refused])), "only_failed");
  assert.equal(announcementKey(summarise([])), null);
  assert.equal(
    isTransition({ state: "processing", progress: 10 }, { state: "processing", progress: 90 }),
    false,
  );
  assert.equal(isTransition({ state: "processing" }, { state: "completed" }), true);
  assert.equal(isTransition(null, { state: "completed" }), false);
});
