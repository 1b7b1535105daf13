// The first page: the endpoint to copy and how each server fares. A client of the API and
// nothing more. All text is set as text, so nothing a server says can become markup.

const REFRESH_MS = 3000;
const TOKEN = "mcpm-admin-token";

const at = (id) => document.getElementById(id);

/** When each server was last seen to change, by name: {mark, since}. */
const seen = new Map();
let timer = 0;

async function servers(token) {
  const response = await fetch("api/v1/upstreams", {
    headers: { Authorization: `Bearer ${token}` },
    cache: "no-store",
  });
  const body = await response.json().catch(() => null);
  if (!response.ok) {
    const error = new Error(body?.error ?? `The manager answered ${response.status}.`);
    error.refused = response.status === 401 || response.status === 503;
    throw error;
  }
  return body;
}

function cell(text, kind = "td") {
  const element = document.createElement(kind);
  element.textContent = text;
  return element;
}

function clock(time) {
  const today = new Date().toDateString() === time.toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString();
}

/** A server that is down knows since when; of the others this page knows what it saw. */
function lastChange(server) {
  const mark = JSON.stringify([server.status, server.tools, server.error]);
  const before = seen.get(server.name);
  if (before?.mark !== mark) {
    seen.set(server.name, { mark, since: before ? new Date() : null });
  }
  if (typeof server.down_for === "number") {
    return clock(new Date(Date.now() - server.down_for * 1000));
  }
  const since = seen.get(server.name).since;
  return since ? clock(since) : "none seen";
}

function row(server) {
  const line = document.createElement("tr");
  const name = cell(server.name, "th");
  name.scope = "row";
  const state = cell(server.status);
  state.className = server.status;
  let error = server.error ?? "";
  if (typeof server.retry_in === "number") {
    error += `${error && "; "}next attempt in ${server.retry_in} s`;
  }
  line.append(name, state, cell(server.tools), cell(lastChange(server)), cell(error));
  return line;
}

function show(list) {
  at("rows").replaceChildren(...list.map(row));
  const connected = list.filter((server) => server.status === "connected").length;
  const summary = list.length === 0
    ? "No servers yet. Add the first one with POST /api/v1/upstreams."
    : `${connected} of ${list.length} connected.`;
  // Set only when it differs: each setting is read out again.
  if (at("summary").textContent !== summary) at("summary").textContent = summary;
  say("stale", "");
}

function say(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

function enter(list) {
  at("door").hidden = true;
  at("inside").hidden = false;
  at("leave").hidden = false;
  show(list);
}

function leave(why = "") {
  clearTimeout(timer);
  sessionStorage.removeItem(TOKEN);
  seen.clear();
  at("rows").replaceChildren();
  at("inside").hidden = true;
  at("leave").hidden = true;
  at("door").hidden = false;
  say("refused", why);
  at("token").focus();
}

/** Asks again and again while a token is held; a hidden tab asks nothing. */
async function refresh() {
  clearTimeout(timer);
  const token = sessionStorage.getItem(TOKEN);
  if (!token) return;
  if (!document.hidden) {
    try {
      const list = await servers(token);
      if (sessionStorage.getItem(TOKEN) !== token) return;
      enter(list);
    } catch (error) {
      if (error.refused) return leave(error.message);
      enterOffline(error);
    }
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, REFRESH_MS);
}

function enterOffline(error) {
  const text = error instanceof TypeError ? "The manager cannot be reached." : error.message;
  say(at("inside").hidden ? "refused" : "stale", `${text} Trying again.`);
}

at("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = at("token").value.trim();
  say("refused", "");
  try {
    const list = await servers(token);
    sessionStorage.setItem(TOKEN, token);
    at("token").value = "";
    enter(list);
    at("servers").focus();
    clearTimeout(timer);
    timer = setTimeout(refresh, REFRESH_MS);
  } catch (error) {
    say("refused", error instanceof TypeError ? "The manager cannot be reached." : error.message);
    at("token").focus();
  }
});

at("leave").addEventListener("click", () => leave());

at("copy").addEventListener("click", async () => {
  const endpoint = at("endpoint");
  try {
    await navigator.clipboard.writeText(endpoint.textContent);
    say("copied", "Copied.");
  } catch {
    // Browsers give plain HTTP no clipboard; a selection is one key press away from it.
    getSelection().selectAllChildren(endpoint);
    say("copied", "Selected; copy it with your keyboard.");
  }
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});

at("endpoint").textContent = new URL("mcp", location.href).href;
refresh();
