// The little that a page does by itself: forms are sent when something changes, answers are put
// where they belong, and what takes long is looked at again. Without it all forms still work.
"use strict";

(() => {
  const token = document.body.dataset.token;
  const offline = document.getElementById("offline");
  const asked = document.getElementById("asked");
  const turns = new Map(); // by place: only the latest question's answer is shown

  const send = async (url, body) => {
    const options = { headers: { "X-Limi": "part" }, credentials: "same-origin" };
    if (body) Object.assign(options, { method: "POST", body: new URLSearchParams(body) });
    try {
      const answer = await fetch(url, options);
      offline.hidden = true;
      const told = answer.headers.get("X-Limi-Asked");
      if (told && asked) asked.textContent = told;
      return await answer.text();
    } catch (error) {
      offline.hidden = false;
      return null;
    }
  };

  const show = (place, text, turn) => {
    if (text === null || turns.get(place.id) !== turn) return;
    place.innerHTML = text; // rendered and escaped by the server; no script runs from here
    place.classList.remove("gone");
    mark(place);
    watch(place, turn);
  };

  const ask = async (place, url, body) => {
    const turn = (turns.get(place.id) || 0) + 1;
    turns.set(place.id, turn);
    place.classList.add("gone");
    show(place, await send(url, body), turn);
  };

  const watch = (place, turn) => {
    const job = place.querySelector("[data-job]");
    if (!job) return;
    setTimeout(async () => {
      if (turns.get(place.id) !== turn) return;
      const text = await send(`/job/${job.dataset.job}`);
      if (text === null) setTimeout(() => watch(place, turn), 2000);
      else show(place, text, turn);
    }, 400);
  };

  // Cells that changed, and cells that a broken rule looks at.
  const card = document.getElementById("card");
  const mark = (place) => {
    const met = place.querySelector("[data-broken]");
    if (!card || !met) return;
    const broken = met.dataset.broken.split(" ");
    for (const cell of card.querySelectorAll("[data-cell]"))
      cell.classList.toggle("broken", broken.includes(cell.dataset.cell));
  };

  if (card) {
    const fields = [...card.querySelectorAll("[data-was]")];
    const answer = document.getElementById("answer");
    const more = document.getElementById("more");
    const reset = card.querySelector("[data-reset]");
    const start = new Map(fields.map((field) => [field, field.value]));
    const changes = () => {
      for (const field of fields)
        field.closest(".cell").classList.toggle("changed", field.value !== start.get(field));
      reset.hidden = fields.every((field) => field.value === start.get(field));
    };
    const body = () => [...new FormData(card)];
    const live = () => {
      changes();
      if ("live" in card.dataset) ask(answer, `${card.dataset.start}/ask`, body());
    };
    let waiting;
    card.addEventListener("change", live);
    card.addEventListener("input", (event) => {
      if (!event.target.matches("input[data-was]")) return;
      clearTimeout(waiting);
      waiting = setTimeout(live, 350);
    });
    reset.addEventListener("click", () => {
      for (const field of fields) field.value = start.get(field);
      live();
    });
    card.addEventListener("submit", (event) => {
      const button = event.submitter;
      if (!button) return;
      event.preventDefault();
      if (button.dataset.more !== undefined) ask(more, button.getAttribute("formaction"), body());
      else live();
    });
    if ("live" in card.dataset) live();
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.into) {
      event.preventDefault();
      ask(document.getElementById(form.dataset.into), form.action, [...new FormData(form)]);
    } else if (form.dataset.part !== undefined) {
      const place = form.closest("[aria-live]") || document.getElementById("main");
      if (!place.id) return;
      event.preventDefault();
      ask(place, form.action, [...new FormData(form)]);
    }
  });

  // Where filters stand above what they filter, they are folded away until somebody wants them.
  if (matchMedia("(max-width: 64rem)").matches)
    for (const filters of document.querySelectorAll("details.filters")) filters.open = false;

  for (const form of document.querySelectorAll("form[data-auto]"))
    form.addEventListener("change", () => form.requestSubmit());

  const map = document.getElementById("map");
  if (map) {
    turns.set(map.id, 1);
    watch(map, 1);
  }
})();
