/** The page for people: every endpoint in a table; one of them with its commands and switches. Reads well without its script. */
import type { EndpointView } from './control.js';
import { FAULT_NAMES, FAULT_SWITCHES, type FaultName } from './faults.js';
import type { PowerCommand } from './journal.js';

const CHARACTERS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escape = (text: unknown): string => String(text).replaceAll(/[&<>"']/g, (character) => CHARACTERS[character]!);

/** Markup whose values are escaped; only what `html` itself made goes in as it is. */
class Markup {
  constructor(readonly text: string) {}
}
type Value = Markup | readonly Markup[] | string | number;
const render = (value: Value): string => (value instanceof Markup ? value.text : Array.isArray(value) ? value.map(render).join('') : escape(value));
const html = (parts: TemplateStringsArray, ...values: readonly Value[]): Markup => new Markup(parts.map((part, index) => (index === 0 ? '' : render(values[index - 1]!)) + part).join(''));

const row = (cells: readonly Value[]): Markup => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
const table = (titles: readonly string[], rows: readonly Markup[]): Markup => html`<table><thead><tr>${titles.map((title) => html`<th>${title}</th>`)}</tr></thead><tbody>${rows}</tbody></table>`;
const json = (value: unknown): string => JSON.stringify(value);
const commandsText = (byValue: Readonly<Record<number, number>>): string => Object.entries(byValue).map(([value, times]) => `${value} × ${times}`).join(', ');

const nextBoot = ({ armed }: EndpointView): string => (armed.boot === 'network' ? 'network, once' : armed.source ? `disk (${armed.source}, role ${armed.role})` : 'disk');
const hookText = ({ hook }: EndpointView): string => (hook === null ? '' : hook.last === null ? 'not run yet' : `${hook.last.power}: ${hook.last.result}, ${hook.failures} of ${hook.runs} failed`);

const endpointRow = (view: EndpointView): Markup => row([
  html`<a href="/?endpoint=${view.endpoint}">${view.endpoint}</a>`, html`<code>${view.url}</code>`, html`<code>${view.machineUuid}</code>`, view.power, nextBoot(view),
  view.counts.requests, view.counts.refusedLogins, view.counts.maxInFlight, commandsText(view.counts.powerCommands), Object.keys(view.thrown).join(', '), hookText(view),
]);

function field(name: FaultName, value: unknown): Markup {
  const { kind, choices } = FAULT_SWITCHES[name];
  switch (kind) {
    case 'flag':
      return html`<input type="checkbox" name="value"${value ? html` checked` : ''}>`;
    case 'choice':
      return html`<select name="value">${choices.map((choice) => html`<option${choice === value ? html` selected` : ''}>${choice}</option>`)}</select>`;
    case 'count':
    case 'json':
      return html`<input name="value" size="24" value="${kind === 'count' ? String(value) : json(value)}">`;
  }
}

const switchRow = (view: EndpointView, name: FaultName): Markup => html`<tr${name in view.thrown ? html` class="thrown"` : ''}><td><code>${name}</code></td><td><form data-path="/api/endpoints/${view.endpoint}/faults" data-method="PATCH" data-name="${name}" data-kind="${FAULT_SWITCHES[name].kind}">${field(name, view.faults[name])} <button>set</button></form></td><td>${FAULT_SWITCHES[name].of}</td></tr>`;
const powerButton = (view: EndpointView, power: string): Markup => html`<form class="inline" data-path="/api/endpoints/${view.endpoint}/power" data-method="POST" data-name="power" data-kind="choice"><input type="hidden" name="value" value="${power}"><button>${power}</button></form>`;

const details = (view: EndpointView, commands: readonly PowerCommand[]): Markup => html`
<h2 id="endpoint">Endpoint ${view.endpoint}</h2>
<p>A person presses the button: ${['on', 'off-soft', 'sleep-deep', 'hibernate'].map((power) => powerButton(view, power))}</p>
${view.hook?.last ? html`<h3>The last power command of the operator</h3><pre>${json(view.hook.last)}</pre>` : ''}
<h3>Power commands, newest first</h3>
${table(['at', 'asked', 'ReturnValue', 'answer'], [...commands].reverse().slice(0, 50).map(({ at, value, returnValue, answerLost }) => row([at, value, returnValue ?? '–', answerLost ? 'lost' : 'sent'])))}
<h3>Switches</h3>
<table><tbody>${FAULT_NAMES.map((name) => switchRow(view, name))}</tbody></table>`;

const STYLE = 'body{font:14px system-ui,sans-serif;margin:1.5em}table{border-collapse:collapse;margin:.5em 0}td,th{padding:.2em .6em;border:1px solid #ccc;text-align:left;vertical-align:top}.thrown{background:#fff2c2}.inline{display:inline}#problem{color:#a00;white-space:pre-wrap}';
/** Sends a form as JSON; what was refused is shown as text. */
const SCRIPT = `
const read = (form) => {
  const field = form.elements.value, text = field.value.trim();
  if (form.dataset.kind === 'flag') return field.checked;
  if (form.dataset.kind === 'count') return text === '' || Number.isNaN(Number(text)) ? text : Number(text);
  return form.dataset.kind === 'json' ? JSON.parse(text) : field.value;
};
document.addEventListener('submit', async (event) => {
  event.preventDefault();
  const { path, method, name } = event.target.dataset, problem = document.getElementById('problem');
  try {
    const answer = await fetch(path, { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ [name]: read(event.target) }) });
    if (answer.ok) return location.reload();
    const { code, message, hint } = await answer.json();
    problem.textContent = code + ': ' + message + ' (' + hint + ')';
  } catch (error) {
    problem.textContent = String(error);
  }
});`;

export interface ControlPage {
  readonly endpoints: readonly EndpointView[];
  readonly chosen: EndpointView | null;
  readonly commands: readonly PowerCommand[];
  /** Of the policy that lets style and script run. */
  readonly nonce: string;
}

export const controlPage = ({ endpoints, chosen, commands, nonce }: ControlPage): string => html`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Simulated AMT</title><style nonce="${nonce}">${new Markup(STYLE)}</style></head><body>
<h1>Simulated AMT</h1><p id="problem"></p>
${table(['endpoint', 'WS-Man', 'machine UUID', 'power', 'next boot', 'requests', 'refused logins', 'most at once', 'power commands', 'switches thrown', 'command'], endpoints.map(endpointRow))}
${chosen ? details(chosen, commands) : html`<p>Choose an endpoint by its number: its commands, its button and its switches.</p>`}
<script nonce="${nonce}">${new Markup(SCRIPT)}</script></body></html>
`.text;
