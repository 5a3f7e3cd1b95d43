// The memory of memoird in opencode: `memoird init --opencode` writes this file, and with `--uninstall` removes it.
//
// A session begins with the context of memoird, as a part of its system prompt. A session that ends, pauses, or is
// about to be compacted becomes a record. memoird reads sessions from the database of opencode.

import { spawn } from "node:child_process"

const PROGRAM = "memoird"

// A session without a message for so long is recorded, because a server may never end.
const PAUSE_MS = 15 * 60 * 1000
const TIMEOUT_MS = 5000

export const memoird = async ({ directory }) => {
  // What memoird says at the start of each session.
  const contexts = new Map()
  // Sessions of agents that another session started, whose results are in that session.
  const subagents = new Set()
  // Sessions that were not recorded since their last message, each with a timer while it is idle.
  const unrecorded = new Map()
  let lastEnd = Promise.resolve()

  // Returns what memoird prints; nothing if it fails, because memory must never stop a session.
  const hook = (event, session) =>
    new Promise((resolve) => {
      const child = spawn(PROGRAM, ["hook", "opencode", event], {
        cwd: directory,
        stdio: ["pipe", "pipe", "ignore"],
        timeout: TIMEOUT_MS,
      })
      let output = ""
      child.on("error", () => resolve(""))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (bytes) => (output += bytes))
      child.on("close", () => resolve(output))
      child.stdin.end(JSON.stringify({ session_id: session, cwd: directory }))
    })

  const end = (session) => {
    clearTimeout(unrecorded.get(session))
    unrecorded.delete(session)
    lastEnd = Promise.all([lastEnd, hook("session-end", session)])
    return lastEnd
  }

  const context = async (session) => {
    // The session before may be what this one is about.
    await lastEnd
    try {
      return JSON.parse(await hook("session-start", session)).hookSpecificOutput.additionalContext
    } catch {
      return ""
    }
  }

  return {
    event: async ({ event: { type, properties } }) => {
      if (type === "session.created") {
        if (properties.info.parentID) subagents.add(properties.info.id)
        else for (const [session, timer] of [...unrecorded]) if (timer) end(session)
      } else if (type === "session.idle" && !subagents.has(properties.sessionID)) {
        const session = properties.sessionID
        clearTimeout(unrecorded.get(session))
        const timer = setTimeout(() => end(session), PAUSE_MS)
        timer.unref?.()
        unrecorded.set(session, timer)
      }
    },
    "chat.message": async ({ sessionID }) => {
      if (subagents.has(sessionID)) return
      clearTimeout(unrecorded.get(sessionID))
      unrecorded.set(sessionID, undefined)
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      // Titles and summaries are made without the description of the environment, and need no memory.
      const isAgent = system.some((it) => it.includes("<env>"))
      if (!sessionID || !isAgent || subagents.has(sessionID)) return
      if (!contexts.has(sessionID)) contexts.set(sessionID, context(sessionID))
      const text = await contexts.get(sessionID)
      // Some models accept one system message only.
      if (text) system.push([system.pop(), text].join("\n\n"))
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      if (!subagents.has(sessionID)) await hook("pre-compact", sessionID)
    },
    dispose: async () => {
      for (const session of [...unrecorded.keys()]) end(session)
      await lastEnd
    },
  }
}
