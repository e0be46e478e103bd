/* style.c - what the report needs beyond the style that all pages share.
 * SPDX-License-Identifier: MIT
 */
#include "shardplan.h"

/* clang-format off: one rule a line */
const char sp_style[] =
    ":root{--bad:#b3372f;"
    "--t0:#2f6fd0;--t1:#e08a1e;--t2:#7a5bd0;--t3:#2a9d8f;--t4:#7d8796;--t5:#d1495b;--t6:#c2a100;--t7:#4b8b1f;--t8:#c9ccd4;"
    "--m0:#2f6fd0;--m1:#2a9d8f;--m2:#7a5bd0;--m3:#e08a1e;--m4:#d1495b;--m5:#8a909c}"
    "@media(prefers-color-scheme:dark){:root{--bad:#ff8d84;"
    "--t0:#6ea3ff;--t1:#f5a84f;--t2:#a992ff;--t3:#55c7b8;--t4:#98a2b3;--t5:#f07a8a;--t6:#e3c64a;--t7:#8fd05a;--t8:#3b4250;"
    "--m0:#6ea3ff;--m1:#55c7b8;--m2:#a992ff;--m3:#f5a84f;--m4:#f07a8a;--m5:#757d8b}}"
    "main{max-width:1240px}"
    ".fact{padding:13px 16px;flex:1 1 140px}"
    ".fact b{font-size:23px}"
    ".two{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:16px;align-items:start}"
    ".three{display:grid;grid-template-columns:repeat(auto-fit,minmax(330px,1fr));gap:14px;margin:16px 0}"
    ".three .card,.two .card{margin:16px 0 0}"
    "@media(max-width:900px){.two{grid-template-columns:1fr}}"
    "table{margin-top:0}"
    "th{vertical-align:bottom}"
    "tr:last-child td{border-bottom:0}"
    "tr.best td{font-weight:620}"
    ".wrap{white-space:normal}"
    ".bad{color:var(--bad)}"
    ".bar{display:flex;height:12px;background:var(--track);border-radius:3px;overflow:hidden;min-width:220px}"
    ".bar i{display:block;height:100%}"
    ".time{background:none}"
    "object{display:block;width:100%;height:auto}"
    "svg.curve text{fill:var(--faint);font-size:11px}"
    "svg.curve .value{fill:var(--ink);font-size:12px;font-weight:560}"
    "details table{margin-top:10px}";
/* clang-format on */
