#include "report/style.h"

namespace valora::report {

const char* const kPageStyle = R"css(:root {
  color-scheme: light dark;
  --ground: #f6f7f8; --raised: #ffffff; --text: #1b2126; --quiet: #56616b; --rule: #d5dadf; --grid: #eef0f2;
  --good: #1d6b3a; --bad: #a3231f; --band: #a3231f14; --accent: #17616a;
}
.c0 { --c: #2563c9; } .c1 { --c: #c2610c; } .c2 { --c: #12805c; } .c3 { --c: #8b3fc4; }
.c4 { --c: #0b7f93; } .c5 { --c: #b8327f; } .c6 { --c: #7d6a00; } .c7 { --c: #7a5138; }
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14181b; --raised: #1c2226; --text: #e7ebee; --quiet: #a3afb8; --rule: #39434a; --grid: #252c31;
    --good: #7ed19b; --bad: #ff9d97; --band: #ff9d971f; --accent: #7cc7d0;
  }
  .c0 { --c: #74a9ff; } .c1 { --c: #f7a35c; } .c2 { --c: #4fd0a0; } .c3 { --c: #c692f5; }
  .c4 { --c: #52cfe3; } .c5 { --c: #f481bb; } .c6 { --c: #d9c24a; } .c7 { --c: #cf9f80; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 20px clamp(14px, 4vw, 44px) 60px; max-width: 1480px; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 32px 0 8px; } a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.lead, .note { color: var(--quiet); margin: 0 0 12px; max-width: 78ch; }
code, pre { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 13px; overflow-wrap: anywhere; }
pre { background: var(--raised); border: 1px solid var(--rule); padding: 12px; border-radius: 8px; white-space: pre-wrap; }
details { margin-top: 28px; } summary { cursor: pointer; color: var(--quiet); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(138px, 1fr)); gap: 10px; margin: 18px 0; }
.tile { background: var(--raised); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 21px; white-space: nowrap; } .tile span { color: var(--quiet); font-size: 13px; }
.scroll { overflow-x: auto; background: var(--raised); border: 1px solid var(--rule); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 6px 10px; text-align: left; border-bottom: 1px solid var(--rule); white-space: nowrap; vertical-align: top; }
thead th { color: var(--quiet); font-weight: 400; font-size: 13px; }
tbody th { font-weight: 600; } tbody th:first-child { position: sticky; left: 0; background: var(--raised); }
tbody tr:last-child > * { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
td.wide { white-space: normal; min-width: 220px; } td code { white-space: nowrap; color: var(--quiet); }
)css";

const char* const kChartStyle =
    R"css(.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; background: var(--c, var(--quiet)); margin-right: 7px; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.panels { display: flex; flex-wrap: wrap; gap: 14px; align-items: flex-start; }
figure { margin: 0; max-width: 100%; background: var(--raised); border: 1px solid var(--rule); border-radius: 8px; padding: 12px 14px 6px; }
figcaption { color: var(--quiet); font-size: 13px; margin-bottom: 6px; } figcaption b { color: var(--text); font-size: 15px; margin-right: 6px; }
svg { display: block; } svg text { font-size: 12px; fill: var(--quiet); }
svg .axis { text-anchor: end; font-size: 11px; } svg .step { text-anchor: middle; }
svg .name { fill: var(--c, var(--quiet)); font-weight: 600; } svg .value { font-weight: 400; fill: var(--text); }
svg .struck { text-decoration: line-through; } svg .verdict { text-anchor: middle; font-size: 11px; font-weight: 600; fill: var(--bad); }
.grid { stroke: var(--grid); } .undone { fill: var(--band); }
)css";

}  // namespace valora::report
