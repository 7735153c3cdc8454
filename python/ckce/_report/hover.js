// Says at once, and to a finger, what a part of a picture says in its title.
const say = document.createElement("div");
say.id = "say";
say.hidden = true;
document.body.append(say);
for (const title of document.querySelectorAll("svg title")) {
  const part = title.parentNode;
  part.dataset.say = title.textContent;
  part.setAttribute("aria-label", title.textContent);
  title.remove();
}
document.addEventListener("pointermove", show);
document.addEventListener("pointerdown", show);
function show(event) {
  const part = event.target.closest ? event.target.closest("[data-say]") : null;
  say.hidden = !part;
  if (!part) return;
  say.textContent = part.dataset.say;
  const left = Math.min(event.clientX + 14, innerWidth - say.offsetWidth - 8);
  say.style.left = Math.max(left, 8) + "px";
  say.style.top = Math.max(event.clientY - say.offsetHeight - 12, 8) + "px";
}
