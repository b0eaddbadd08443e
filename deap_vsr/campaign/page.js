"use strict";
// Reload when the folder has changed, unless something was typed: nothing that was typed is lost.
let typed = false;
let seen = null;
document.addEventListener("input", () => { typed = true; });
async function look() {
  try {
    const answer = await fetch("version", { cache: "no-store" });
    const now = await answer.text();
    if (seen !== null && now !== seen && !typed) { location.reload(); }
    seen = seen === null ? now : seen;
  } catch (error) { /* the server has gone; the page stays as it is */ }
}
look();
setInterval(look, 3000);
