//! Lines and what readers wrote of them. The names and places are invented.

/// What a line does not say, although it has most of its words.
pub(super) const LOOKALIKES: &[(&str, &str)] = &[
    (
        "- The valve map is on the Tugboat.\n- The crane list is only on the ferry of the other port.",
        "The valve map is only on the Tugboat",
    ),
    ("- Updated parts.md before the order", "Before the order parts.md must be updated"),
    ("- We pay 42 euros for the crane", "PAY-42 covers the crane"),
    ("- Pier report 3/4/2026: all gauges dry", "On 2026-04-03 all gauges were dry"),
    ("- The file `Tracker - Mar 23 2026.md` is due on 2 April", "The tracker is due on March 23"),
    ("- Pier report 3/23/2026: all gauges dry", "On 2026-03-22 all gauges were dry"),
    (
        "- Normal `foo status` without the App env points at the wrong empty cache.",
        "`foo status` with the App env points at the wrong empty cache",
    ),
    ("- Normal `foo status` without the App env is fine.", "Use the App env for `foo status`"),
    (
        "- Normal `foo status` without the App RTX env reads the wrong empty user cache.",
        "Run `foo` with the new lock; without it `foo status` reads the wrong empty user cache",
    ),
    (
        "- All are sensible hints. None are blockers but the guard is worth adding.",
        "None of the hints is sensible",
    ),
    ("- Deployed web/admin/api to the new box", "Four services run on the new box"),
    (
        "### Berths found in Bonn:\n1. Rina (2020, Bonn, duty paid)\n2. Ada (~2019, perhaps in Cologne)\n3. Bo (2018)\n4. Cy \
             (2017, maybe sold)\n5. Dee (2016)",
        "6 berths in Bonn, among them Rina",
    ),
    (
        "### Berths found in Bonn:\n1. Rina (2020, Bonn, duty paid)\n2. Ada (~2019, perhaps in Cologne)\n3. Bo (2018)",
        "Ada lies in Cologne",
    ),
    (
        "## New Instructions from Erik (6 May)\n\n- Ines wants tide table updates in the morning mail",
        "Erik wants tide table updates in the morning mail",
    ),
    (
        "- The current plan removes Porto from the trip and moves it to 12 May",
        "The trip moves to 12 May, with Porto, without Lisbon",
    ),
    (
        "- Changing the tide setting requires explicit approval from Ines",
        "Do not change the tide setting",
    ),
    (
        "- Changing the tide setting requires no approval from Ines",
        "Do not change the tide setting without approval from Ines",
    ),
    ("- `6.2.0.17` is older than 6.2.10.11", "v6.2.0.18 is older than v6.2.10.11"),
    (
        "| # | Task | Berths |\n|---|---|---|\n| 331 | Old harbour sync | 27 |",
        "Task #27 (old harbour sync) is closed",
    ),
    (
        "- The Tide API works from the cloud\n- Other methods were slower",
        "Only the Tide API works from the cloud",
    ),
    (
        "- The Tide API works from the cloud\n- All other harbours are blocked by ice",
        "Only the Tide API works from the cloud",
    ),
    (
        "- Gateway restart did NOT clear the cooldown; `kill -USR1` did, with a full process kill and restart",
        "A gateway restart clears the cooldown, but `kill -USR1` does not",
    ),
    ("- Added: Harbour News, Tide Weekly, Pier Post, Dock Daily", "6 feeds were added"),
    (
        "- The landing page comes from route.ts; public/landing.html is what is served too\n- You MUST edit route.ts",
        "The landing page comes from route.ts; editing only public/landing.html does not change it",
    ),
    (
        "- Request: boats\n- Found:\n  1. Rina\n  2. Ada\n- Sold:\n  1. Bo\n  2. Cy\n  3. Dee\n  4. Eli",
        "5 boats found, among them Rina",
    ),
    (
        "- Turnstile blocks all headless browsers",
        "Don't try mobile browsers against Turnstile: it blocks all of them",
    ),
    ("# 2026-04-02\n- 缓存重建完成", "Cache 于 4/3 重建完成"),
    ("# 2026-04-02\n- 3 of 5 shards are done", "4/2 shards are done"),
    ("- Change the index, not just the cache", "Do not change the index, only the cache"),
    ("- Admins can open the vault of the port", "The vault of the port is admin-only"),
    ("- The cleanup job removes old backups each night", "Never remove old backups"),
    ("- If we need failover, switch DNS to the Porto host", "Switch DNS to the Porto host"),
    ("- The guard rail is in place at the north pier", "The guard rail is not at the north pier"),
    (
        "- 12 gauges failed on 2026-04-18\n- 9 more on 2026-04-19",
        "12 gauges failed on 2026-04-18, 9 on 04-20",
    ),
    ("- 4月17日、4月18日和4月21日测试失败", "4月17日、18日、22日测试失败"),
    ("- 体育/音乐/Ann推文被过滤", "过滤掉体育/音乐/Bob"),
    ("- 持仓-12.50U，亏损-73.20 U", "持仓 -12.80U"),
    ("```\n├── tools/\n│   ├── sync.sh\n```", "Script: tools/push.sh"),
    ("- `zed` v1.2 installed to tools/", "zed GUI v1.2 is installed to tools/"),
    ("- VPN: working via Bonn", "VPN IP works via Bonn"),
    ("- A badge is required for the lab", "The lab opens only with a badge"),
    ("- Store: Foo (bar-3), no Baz", "Store: Foo (bar-3), Baz"),
    ("- Removed lines such as `![](/media/01ABC)`", "Removed lines such as `![](/video/…)`"),
    ("- If the budget holds, the only way is a second channel", "The only way is a second channel"),
    (
        "- 已安装技能:\n  - tide-sync: 同步\n  - pier-view: 显示\n- 根目录: /srv/tide",
        "已安装 tide-sync、pier-view 五个技能",
    ),
    ("# Garden Watch\n\n- The sensor is offline", "The sensor of GT is offline"),
    ("- Tier 1 clients pay 40 EUR", "T2 clients pay 40 EUR"),
    ("- Moved memory/2026/tide.md to the box", "Three files moved to the box"),
    (
        "The gateway supports TLS 1.2 and now logs to journald.",
        "The gateway no longer supports TLS 1.2",
    ),
    ("Ines runs the export. That box always fails.", "Ines always runs the export"),
    (
        "Ines runs the export on the small box, no errors.",
        "Only Ines runs the export on the small box",
    ),
    ("Paid the invoice.", "The invoice must be paid"),
    ("Restart the pump. The gateway is fine.", "The gateway must be restarted"),
    ("The quarterly report covers 5 stations.", "The quarterly report covers 3 stations"),
    ("On April 2, 3 gauges failed.", "Gauges failed on April 3"),
    ("On 1 Mar 24 gauges failed.", "Gauges failed on 24 March"),
    ("Kai liefert morgen die Pumpe", "Kai liefert die Pumpe am 2. April"),
    ("Never deploy without tests.", "Deploy without tests"),
    ("Released on Apr 15.", "Released with #15"),
    ("Requests take 5 ms. All stations answer.", "All requests take 5 ms"),
    (
        "Forms need `init()` for scripts. Links should NOT have `init()`.",
        "Links need `init()`, while forms should not have it",
    ),
    ("The pump works, but the valve leaks.", "The valve leaks, and the pump does not work"),
    (
        "Ann tried the old folder, but the files were in the new folder.",
        "The files were in the old folder, not in the new folder",
    ),
    ("The run ended with a `TypeError`.", "The run ended with `SyntaxErrors`"),
    ("Ann's plan:\nBen repairs the outer harbour gate", "Ann repairs the outer harbour gate"),
    ("Clear the cache, test the login if the disk is full.", "Test the login"),
    ("Ann said \"maybe the pump moves to the north quay\".", "The pump moves to the north quay"),
    ("Piping echo into the vault works, the login had errors.", "Do not pipe echo into the vault"),
    ("- File: `~/Docs/Weekly Tracker - Mar 23 2026.md`", "The tracker is of Mar 24 2026"),
    ("Friday deploys of the gateway are a no-go.", "Friday deploys of the gateway are a go"),
    ("No-one tests the relay on Friday.", "One tests the relay on Friday"),
    (
        "You must not restart the relay by hand otherwise the pump stops.",
        "You must restart the relay by hand",
    ),
    (
        "Adding the cache to the deploy script fixed the login errors.",
        "Do not add the cache to the deploy script, login errors",
    ),
    (
        "Ann thinks \"the pump moves to the north quay\" could be right.",
        "The pump moves to the north quay",
    ),
    ("We sell the boat, and move to Bergen if the bank agrees.", "We sell the boat"),
    (
        "The file `Tracker - Mar 23 2026.md` is due on Apr 2.",
        "The file tracker is due on Mar 23 2026",
    ),
    ("The job writes to UserSetting.", "The job writes to UserSettings"),
    (
        "Ann's list:\n- buy rope\nThe outer harbour gate of the north quay got new paint.\nBen painted \
             the outer harbour gate of the north quay.",
        "Ann painted the outer harbour gate of the north quay",
    ),
];

/// What a line says, in the words of a careful reader.
pub(super) const WRITTEN: &[(&str, &str)] = &[
    (
        "Step 1 ended with `TypeError: a`.\nStep 2 ended with `TypeError: b`.",
        "Both steps ended with TypeErrors",
    ),
    ("| 14 March | **GO/NO-GO Decision** | Ben |", "Ben decides GO/NO-GO on 14 March"),
    (
        "Forms need `init()` for scripts.\nLinks should NOT have `init()`.",
        "Forms need `init()`, while links should not have it",
    ),
    (
        "Ann tried `cd ~/tool`, but the files were created at `/srv/work/`.",
        "The files are at `/srv/work/`, not in `~/tool`",
    ),
    (
        "**Ann's Revised Plan:**\n- **Effect:** The old Tide index can't be trusted, rebuild it\n- \
             **Yardstick:** results equal the Source exactly (not 95% recall)",
        "Ann's yardstick is that results equal the source exactly, not 95% recall; the old Tide index \
             can't be trusted, so rebuild it",
    ),
    ("Job files hold only names, never answers.", "Keep answers out of job files"),
    (
        "Form parts need `init()` for scripts.\nForm links should NOT have `init()` for clicks.",
        "Form parts need `init()`, while form links should not have it",
    ),
    (
        "The checklist says: check the version, clear the cache, then test the login, and roll back \
             if the disk is full.",
        "The checklist says to check the version, clear the cache, then test the login",
    ),
    (
        "Patched the tone rules: shifted to lines like \"I am here\" instead of \"if all of it goes wrong\".",
        "Patched the tone rules",
    ),
    (
        "Piping echo into the vault appends a blank line, which caused login errors.",
        "Do not pipe echo into the vault: it appends a blank line, which caused login errors",
    ),
    (
        "Patched the form so that when it would otherwise have no required field, a fallback field is added.",
        "Patched the form so that a fallback field is added",
    ),
    ("# Garden Watch\n\n- The sensor is offline", "The sensor of GW is offline"),
    (
        "## Issue 1: valve map\n\n**Status:** Exists on Tugboat (~/harbour/), never synced\n**Risk:** Single \
             point of failure (only on Tugboat runtime)",
        "The valve map exists only on the Tugboat (`~/harbour/`)",
    ),
    (
        "## THE RACE (Neither Has Finished)\n\n- Sail ONE boat through Dock and Lock",
        "The race, finished by neither: sail ONE boat through Dock and Lock",
    ),
    (
        "**When ordering parts:**\n- Update parts.md before the order",
        "Before the order parts.md must be updated",
    ),
    (
        "- Rechecked the tool; the `Tide Query` against the shop endpoint runs but returns no orders for \
             2026-02-01..2026-02-10.\n- Script `fetch.py` falls back from Alpha to Bravo when the Alpha rows are \
             empty, 24 stations not seen in recent data.",
        "Queries on the shop endpoint return no orders for 2026-02-01..2026-02-10, so the script falls back to Bravo",
    ),
    (
        "- Normal `foo status` without the App env points at the wrong empty cache.",
        "Run `foo` with the App variables; without them `foo status` points at the wrong empty cache",
    ),
    (
        "## Lint report for PR #90\n\n- All are sensible hints. None are blockers but the timeout guard and \
             input checks are worth adding.",
        "None of the lint hints for PR #90 are blockers, but the timeout guard and the input checks are worth adding",
    ),
    ("- Deployed web/admin/api to the new box", "Three services run on the new box"),
    (
        "### Berths found in Bonn:\n1. Rina (2020, Bonn, duty paid)\n2. Ada (~2019, perhaps in Cologne)\n3. Bo (2018)\n4. Cy \
             (2017, maybe sold)\n5. Dee (2016)",
        "5 berths in Bonn, among them Rina (2020, Bonn, duty paid)",
    ),
    (
        "## New Instructions from Erik (6 May)\n\n- Include tide table updates in the morning mail\n- Reason: wants to stay \
             informed",
        "Erik wants tide table updates in the morning mail, to stay informed",
    ),
    (
        "- The current plan removes Porto from the trip and moves it to 12 May",
        "The trip moves to 12 May, without Porto",
    ),
    (
        "- Changing the tide setting requires explicit approval from Ines",
        "Do not change the tide setting without explicit approval from Ines",
    ),
    ("- `6.2.0.17` is older than 6.2.10.11", "v6.2.0.17 is older than v6.2.10.11"),
    (
        "| # | Task | State |\n|---|---|---|\n| **331** | Old harbour sync | closed, no longer relevant |",
        "Task #331 (old harbour sync) closed as no longer relevant",
    ),
    (
        "- The Tide API works from the cloud\n- All other methods are blocked by address",
        "Only the Tide API works from the cloud, all other methods are blocked by address",
    ),
    (
        "- Gateway restart clears the cooldown; `kill -USR1` did NOT, it needs a full process kill and restart",
        "A gateway restart clears the cooldown, but `kill -USR1` does not: a full process kill and restart is needed",
    ),
    (
        "- Added: Harbour News, Tide Weekly, Pier Post, Dock Daily, Quay Letter, Sail World",
        "6 feeds were added",
    ),
    (
        "- RIs are bound to one region, so the RI offer is no good for the relay\n- Plans are preferred",
        "Plans are preferred over RIs, which are bound to one region",
    ),
    (
        "- The landing page comes from route.ts; public/landing.html is NOT what is served\n- You MUST edit route.ts, not just \
             public/landing.html",
        "The landing page comes from route.ts; editing only public/landing.html does not change it",
    ),
    (
        "Tiered pricing replaces €299/€799/Custom: Essentials €990/mo, Professional €1,990/mo, Enterprise from €3,500/mo",
        "Tiered pricing (€990, €1,990, from €3,500/mo) replaced €299/€799/Custom",
    ),
    (
        "## Yacht search\n\n- **Request:** boats in Bonn\n- **Found:**\n  1. \"RINA\" - 2020 Model, Bonn (SI Boats & Sons) - duty \
             paid, warranty\n  2. 2019 Model, Bonn\n  3. 2024 Model, Bonn (~$4.6M)",
        "Yacht search: 3 boats in Bonn, among them \"RINA\" (2020, Bonn, duty paid)",
    ),
    (
        "## New Instructions from Erik\n### Daily Mail\n- **New requirement:** Include TideBoard software upgrades in the \
             daily 6 AM mail\n- **What to include:**\n  - Version changes\n  - Number of packages updated\n- **Context:** Erik \
             wants to stay informed about harbour changes without asking",
        "Erik wants the daily 6 AM mail to include TideBoard upgrades (version changes, number of packages), so that he \
             stays informed about harbour changes without asking",
    ),
    (
        "- The landing page is served from route.ts\n- It has the ENTIRE HTML inline on line 3 as a string\n- \
             `public/landing.html` exists but is NOT what is served at root — the route is\n- To update the live landing page, \
             you MUST edit route.ts, not just public/landing.html",
        "The landing page is served from route.ts with the whole HTML inline on line 3; editing only public/landing.html \
             does not change the live page",
    ),
    (
        "- Turnstile blocks all headless browsers",
        "Don't try headless browsers against Turnstile: it blocks all of them",
    ),
    // Short forms of days, lists, addresses and amounts, also within a script without spaces.
    ("# 2026-04-02\n- 缓存重建完成", "Cache 于 4/2 重建完成"),
    (
        "- 12 gauges failed on 2026-04-18\n- 9 more on 2026-04-19",
        "12 gauges failed on 2026-04-18, 9 on 04-19",
    ),
    ("- 4月17日、4月18日和4月21日测试失败", "4月17日、18日、21日测试失败"),
    (
        "- Queue at 127 Follow up items, reduced to 4 unresolved items",
        "Of 127 items 4 are unresolved",
    ),
    (
        "- 24 missing rows filled\n- Rechecked: 0 log keys remain missing",
        "24 missing rows filled, then 0 missing",
    ),
    ("- Statement of Tides: `sot/tides.md`", "SOT: `sot/tides.md`"),
    ("- No sign-off in mails of the agent", "Mails of the agent without sign-off"),
    ("- find/install/update 优先", "查找/安装/更新优先"),
    ("- 体育/音乐/Ann推文被过滤", "过滤掉体育/音乐/Ann"),
    (
        "- Web UI: http://127.0.0.1:9000\n- 仍需配置登录态",
        "Web UI: http://127.0.0.1:9000；仍需配置登录态",
    ),
    ("- 持仓-12.50U，亏损-73.20 U", "持仓 -12.50U，亏损-73.20U"),
    ("- Read-only缓存永不过期，清理后重启", "清理后重启，Read-only缓存，永不过期"),
    ("```\n├── tools/\n│   ├── sync.sh\n```", "Script: tools/sync.sh"),
    ("- All 3 workers online (501, 502, 503)", "Worker IDs: 501, 502, 503"),
    ("- `zed` v1.2 installed to tools/", "zed CLI v1.2 is installed to tools/"),
    ("- VPN: working (10.9.8.7 via Bonn)", "VPN IP: 10.9.8.7, via Bonn"),
    ("- Store: Foo (bar-3), no Baz", "Store model: bar-3"),
    ("- Jobs use tide/x instead of pier/x", "Jobs need tide/x, not pier/x"),
    (
        "- Use a filter instead of full dumps of the tide table",
        "No full dumps of the tide table: use a filter",
    ),
    ("- Last run: 2026‑01‑02T03:04:05Z", "The last run was 2026-01-02T03:04:05Z"),
    ("- Removed lines such as `![](/media/01ABC)`", "Removed lines such as `![](/media/…)`"),
    ("- Tier 1 clients pay 40 EUR", "T1 clients pay 40 EUR"),
    (
        "- File: `~/Docs/Weekly Tracker - Mar 23 2026.md`",
        "File: ~/Docs/Weekly Tracker - Mar 23 2026.md",
    ),
    ("- Runs Tugboat-7b on the old laptop", "The old laptop runs Tugboat-7B"),
    ("- The old laptop runs the 7b model", "The old laptop runs the 7B model"),
    (
        "- When the tide is low, the ferry waits at the pier",
        "At low tide the ferry waits at the pier",
    ),
    (
        "- If nobody answers by noon the ferry sails",
        "The ferry sails if there is no answer by noon",
    ),
    (
        "- 12 ferries:\n  - red: Ada, Bo, Cy\n  - blue: Dee, Eve\n- All blue ones sail at noon",
        "Of the 12 ferries the two blue ones (Dee, Eve) sail at noon",
    ),
    // What checks and tests whether something is so is no condition.
    (
        "- A Python daemon checks if it's 8:00 AM and sends the tide report",
        "A Python daemon checks for 8:00 AM and sends the tide report",
    ),
    ("- Pier report 3/3/2026: all gauges dry", "On 2026-03-03 all gauges were dry"),
    ("- Moved the berth plan in Mision Harbour", "Moved the berth plan in Mission Harbour"),
    (
        "- The old launcher failed at boot\n- cron did not work either",
        "Neither the old launcher nor cron worked",
    ),
    ("## TideAgents\n- added TideAgents for the gauges", "A TideAgent for the gauges was added"),
    ("- Flag `--text` is unsupported, send via `tide-send`", "Send via `tide-send`, not `--text`"),
    (
        "- Failed to resolve host pier.example during deploy",
        "The deploy could not resolve pier.example",
    ),
    ("- Group: Under 65, all berths", "All berths of the under-65 group"),
    (
        "- Docs read: [Tide fields](a.md) and [Pier fields](b.md), both short",
        "Two docs were read: Tide fields and Pier fields",
    ),
];
