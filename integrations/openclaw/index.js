// memoird as a plugin of OpenClaw: context at the start of a run, results for `memory_search`, and a record of each
// session. It calls the program memoird, and never makes a run fail: what does not work is left out.

import { execFile } from "node:child_process";
import { join } from "node:path";

const TIMEOUT_MS = 15_000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;
const IDLE_MINUTES = 30;
const RESULTS_MAX = 10;
const DATABASE = "openclaw-agent.sqlite";

// Memory is for private conversations with the owner, as MEMORY.md is: not for groups, and not for jobs.
const OTHER_SESSIONS = /(^|:)(group|channel|room|subagent|cron|hook|heartbeat|boot)(:|$)/;

export default {
  id: "memoird",
  name: "memoird",
  description: "Gives sessions the memory that memoird keeps, and records them",
  register(api) {
    const settings = api.pluginConfig ?? {};
    const command = settings.command || "memoird";
    const config = () => api.runtime?.config?.current?.() ?? api.config;
    const isPrivate = (params) =>
      Boolean(params.agentId) && !params.sandboxed && !OTHER_SESSIONS.test(params.agentSessionKey ?? "");
    const workspaceOf = (agentId) => api.runtime.agent.resolveAgentWorkspaceDir(config(), agentId);

    // Resolves to what the program prints; nothing if it fails, as in a workspace that is no memory folder.
    const call = (...args) =>
      new Promise((resolve) => {
        const options = { timeout: TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX };
        execFile(command, args, options, (error, stdout) => {
          if (error) api.logger?.debug?.(`memoird ${args[0]}: ${error.message}`);
          resolve(error ? "" : stdout);
        }).stdin?.end();
      });

    api.registerMemoryPromptPreparation?.(async (params) => {
      if (!isPrivate(params)) return [];
      // The block in MEMORY.md has what WISDOM.md says.
      const text = await call("--root", workspaceOf(params.agentId), "context", "--beside-block");
      return text ? text.trimEnd().split("\n") : [];
    });

    api.registerMemoryCorpusSupplement?.({
      async search(params) {
        if (!isPrivate(params)) return [];
        const limit = String(params.maxResults ?? RESULTS_MAX);
        const root = workspaceOf(params.agentId);
        const text = await call("--root", root, "search", "--json", "--limit", limit, "--", params.query);
        const hits = text ? JSON.parse(text).hits ?? [] : [];
        // The first hit fits best; the scores of two programs are not on one scale.
        return hits.map((hit, at) => ({
          corpus: "memoird",
          path: hit.path,
          title: hit.date,
          kind: hit.tier,
          score: 1 / (at + 1),
          snippet: hit.text,
          startLine: hit.line,
          endLine: hit.line,
          citation: `${hit.path}:${hit.line}`,
          source: "memoird",
          updatedAt: hit.date,
        }));
      },
      async get(params) {
        if (!isPrivate(params)) return null;
        const text = await call("--root", workspaceOf(params.agentId), "show", "--", params.lookup);
        if (!text) return null;
        const from = params.fromLine ?? 1;
        const lines = text.split("\n").slice(from - 1, params.lineCount ? from - 1 + params.lineCount : undefined);
        const content = lines.join("\n");
        return { corpus: "memoird", path: params.lookup, content, fromLine: from, lineCount: lines.length };
      },
    });

    // Records what a session has that is in no record yet.
    const record = (event, { agentId, sessionId, workspaceDir }) => {
      if (!agentId || !sessionId) return Promise.resolve("");
      const transcript = `${join(api.runtime.agent.resolveAgentDir(config(), agentId), DATABASE)}#${sessionId}`;
      const folder = workspaceDir ?? workspaceOf(agentId);
      return call("hook", "openclaw", event, "--transcript", transcript, "--cwd", folder);
    };
    const isConversation = (ctx) => !/(^|:)(subagent|cron|hook|heartbeat|boot)(:|$)/.test(ctx.sessionKey ?? "");

    // A session of the Gateway goes on for days: it is recorded when it was idle. Without the Gateway each call is one
    // turn in a process of its own.
    let isGateway = false;
    const timers = new Map();
    const stopTimer = (id) => {
      clearTimeout(timers.get(id));
      timers.delete(id);
    };
    const on = (name, handler) =>
      api.on(name, async (event, ctx) => {
        await handler(event ?? {}, { ...ctx, sessionId: ctx?.sessionId ?? event?.sessionId });
      });
    on("gateway_start", () => {
      isGateway = true;
    });
    on("agent_end", (_event, ctx) => {
      if (!isConversation(ctx) || (ctx.trigger && ctx.trigger !== "user")) return undefined;
      if (!isGateway) return record("session-end", ctx);
      stopTimer(ctx.sessionId);
      const wait = (settings.idleMinutes ?? IDLE_MINUTES) * 60_000;
      const timer = setTimeout(() => {
        timers.delete(ctx.sessionId);
        void record("session-end", ctx);
      }, wait);
      timer.unref?.();
      timers.set(ctx.sessionId, timer);
      return undefined;
    });
    on("session_end", (_event, ctx) => {
      stopTimer(ctx.sessionId);
      return isConversation(ctx) ? record("session-end", ctx) : undefined;
    });
    on("before_compaction", (_event, ctx) => (isConversation(ctx) ? record("pre-compact", ctx) : undefined));
  },
};
