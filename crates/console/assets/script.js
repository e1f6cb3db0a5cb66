// What pages do better with a script: text is copied at a click, and the playground shows an answer as it comes.
// Without it, text is selected by hand, and the playground shows the whole answer.
"use strict";

function element(name, attributes, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function copyButton(source, name) {
  const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
  if (name) button.setAttribute("aria-label", `Copy: ${name}`);
  button.addEventListener("click", async () => {
    button.removeAttribute("aria-label");
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // No clipboard outside of a secure context: the text is selected, and a key copies it.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
  });
  return button;
}

for (const snippet of document.querySelectorAll(".snippet pre")) snippet.before(copyButton(snippet));
for (const code of document.querySelectorAll(".facts dd > code")) {
  code.after(" ", copyButton(code, code.closest("div").querySelector("dt").textContent));
}

// The page has moments in UTC: beside them the visitor's own, and how long ago it was.
const spans = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]];
const since = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
for (const time of document.querySelectorAll("time[datetime]")) {
  const at = new Date(time.dateTime);
  const [unit, length] = spans.find(([, span]) => Math.abs(at - Date.now()) >= span) ?? spans.at(-1);
  time.title = `${since.format(Math.trunc((at - Date.now()) / length), unit)}: ${at.toLocaleString()}`;
}

const form = document.querySelector('form[action="/playground"]');
if (form) playground(form);

function playground(form) {
  const [state, answer] = [element("p", { className: "intro" }), element("pre", { tabIndex: 0 })];
  state.setAttribute("role", "status");
  answer.setAttribute("aria-label", "Answer");
  const facts = element("dl");
  const shown = element("section", { className: "facts answer", hidden: true },
    element("h2", { textContent: "Answer" }), state, answer, facts);
  const send = form.querySelector("button");
  const renew = element("button", { type: "button", className: "plain-button", textContent: "Another request key" });
  const join = element("a", { target: "_blank", rel: "noopener", textContent: "Join from another tab" });
  send.after(" ", renew, " ", join);
  form.after(shown);

  // Behind the #: no server is told of it. Whoever opens it pastes the API key again.
  const names = ["model", "message", "request_key"];
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of names) if (given.has(name)) form.elements[name].value = given.get(name);
  const link = () => {
    const told = names.map((name) => [name, form.elements[name].value]);
    join.href = "/playground#" + new URLSearchParams(told);
  };
  link();
  form.addEventListener("input", link);
  renew.addEventListener("click", () => {
    form.elements.request_key.value = fresh();
    send.textContent = "Send";
    link();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    shown.hidden = false;
    [state.textContent, answer.textContent] = ["It is on its way.", ""];
    facts.replaceChildren();
    try {
      await ask(form, { state, answer, facts });
    } catch {
      state.textContent = "The answer broke off. Send it again: under its key it goes on, and is charged once.";
    }
    send.disabled = false;
    send.textContent = "Send again";
  });
}

// A UUID that also browsers without a secure context can make.
function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64;
  bytes[8] = (bytes[8] & 63) | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

async function ask(form, { state, answer, facts }) {
  const body = new URLSearchParams(new FormData(form));
  const reply = await fetch("/playground/stream", { method: "POST", body });
  const replayed = reply.headers.get("idempotent-replayed") === "true";
  const type = reply.headers.get("content-type") ?? "";
  if (type.startsWith("text/event-stream")) {
    state.textContent = replayed ? "A replay, or joined while it runs." : "It runs.";
    const failed = await follow(reply.body, answer);
    state.textContent = failed ?? (replayed
      ? "The answer of the first request with this key, sent again without a run and without a charge."
      : "It ran. Send it again: the same answer comes, and no other charge.");
  } else {
    const told = type.startsWith("application/json") ? await reply.json() : {};
    state.textContent = told.error?.message ?? "It was not sent. Load this page again, and sign in if you are asked.";
  }
  const found = await fetch("/playground/operation", { method: "POST", body });
  const outcome = found.ok && !found.redirected ? await found.json() : null;
  fact(facts, "Status", String(reply.status));
  fact(facts, "idempotent-replayed", String(replayed));
  if (!outcome) return;
  fact(facts, "Request", outcome.status);
  fact(facts, "It cost, once", outcome.charge ?? "–");
  fact(facts, "Its id", element("code", { textContent: outcome.id }));
  if (outcome.href) fact(facts, "Why", element("a", { href: outcome.href, textContent: "Charge breakdown" }));
}

function fact(facts, name, value) {
  facts.append(element("div", {}, element("dt", { textContent: name }), element("dd", {}, value)));
}

// Shows the pieces of a stream as they come; tells what went wrong, if anything did.
async function follow(body, answer) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return "The stream broke off. Send it again under its key to learn what became of it.";
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: ")) continue;
      if (event === "data: [DONE]") return null;
      const told = JSON.parse(event.slice(6));
      if (told.error) return told.error.message;
      answer.append(told.choices?.[0]?.delta?.content ?? "");
    }
  }
}
