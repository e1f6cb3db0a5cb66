// What pages do better with a script: text is copied at a click. Without it, it is selected by hand.
"use strict";
for (const snippet of document.querySelectorAll(".snippet pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(snippet.textContent);
    button.textContent = "Copied";
  });
  snippet.before(button);
}
