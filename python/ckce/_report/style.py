"""The style sheet of the report: light, dark and on paper."""

_LIGHT = """\
--page:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d8dee4;--wash:#f6f8fa;--grid:#eaeef2;--axis:#8c959f;
--good:#1a7f37;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#b8860b;--c5:#3a9bd9;--c6:#555;
--over:#d55e00;--under:#0072b2;--rest:#9aa4ae;--kept:#b7e4c7;--half:#ffe8a3;--lost:#ffc9b9;--warn:#fff4d6;
--warn-line:#d4a72c;--floor:#57606a;color-scheme:light"""
_DARK = """\
--page:#0f1318;--ink:#e6edf3;--soft:#9aa6b2;--line:#2d353e;--wash:#171d24;--grid:#222a33;--axis:#6b7681;
--good:#56d364;--c0:#58a6e8;--c1:#f0883e;--c2:#3fc79a;--c3:#e29bc4;--c4:#e3b341;--c5:#8cd0ff;--c6:#b8c0c8;
--over:#f0883e;--under:#58a6e8;--rest:#66717c;--kept:#1f5c38;--half:#6b5510;--lost:#7a3420;--warn:#2b2410;
--warn-line:#9e7b1b;--floor:#b8c0c8;color-scheme:dark"""

_RULES = """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);
  font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:40px 28px 64px}
header{border-bottom:1px solid var(--line);padding-bottom:20px;margin-bottom:8px}
header p{margin:0;color:var(--soft)}
h1{font-size:30px;line-height:1.25;margin:6px 0 10px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;margin:40px 0 6px}
section>p{margin:0 0 12px;max-width:88ch}
.nowrap{white-space:nowrap}
.note,figcaption span{color:var(--soft)}
ul{margin:8px 0;padding-left:20px}
li{margin:3px 0;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{padding:7px 8px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600;font-size:12.5px;color:var(--soft)}
tbody th{color:var(--ink);font-size:14px;white-space:normal;overflow-wrap:anywhere;min-width:110px}
th:first-child,td:first-child{text-align:left;padding-left:0}
td:last-child,th:last-child{padding-right:0}
.key{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:8px}
td.strong{font-weight:700}
.warning{background:var(--warn);border-left:4px solid var(--warn-line);padding:8px 14px;margin:10px 0;
  overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(280px,1fr));gap:18px 26px}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}
figcaption span{display:block;font-weight:400;font-size:13px}
svg{display:block;width:100%;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,
  "Liberation Sans",sans-serif}
.heat{max-width:460px}
svg text{fill:var(--ink)}
svg .small{font-size:11.5px;fill:var(--soft)}
svg .tiny{font-size:10px;fill:var(--soft)}
svg .ink{fill:var(--ink)}
svg .name{font-size:13px;font-weight:600}
svg .num{font-variant-numeric:tabular-nums}
svg .grid{stroke:var(--grid)}
svg .axis,svg .zero{stroke:var(--axis)}
svg .diagonal{stroke:var(--axis);stroke-dasharray:5 4}
svg .floor{stroke:var(--floor);stroke-width:2.5}
svg .whisker{stroke-width:3;stroke-linecap:round}
svg .hollow{fill:var(--page);stroke-width:1.6}
svg .curve{fill:none;stroke-width:1.8}
svg .band{opacity:.18}
svg .bar{opacity:.75}
svg .over{fill:var(--over)} svg .under{fill:var(--under)} svg .balanced,svg .rest{fill:var(--rest)}
svg .kept{fill:var(--kept)} svg .half{fill:var(--half)} svg .lost{fill:var(--lost)}
.swatch{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 5px 0 8px}
code,pre{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
pre{background:var(--wash);border:1px solid var(--line);border-radius:6px;padding:10px 14px;margin:6px 0 14px;
  white-space:pre-wrap;overflow-wrap:anywhere}
details pre{max-height:420px;overflow:auto}
summary{cursor:pointer}
dt{font-weight:600;margin-top:10px}
dd{margin:0;max-width:88ch}
"""
_COLOURS = "".join(
    f"svg .dot.c{k},svg .bar.c{k},svg .band.c{k}{{fill:var(--c{k})}}"
    f"svg .curve.c{k},svg .whisker.c{k},svg .hollow.c{k}{{stroke:var(--c{k})}}"
    f".key.c{k}{{background:var(--c{k})}}\n"
    for k in range(7)
)
_PRINT = f"""\
@media print{{:root{{{_LIGHT}}}
body{{font-size:11pt}} main{{max-width:none;padding:0}} h2{{break-after:avoid}}
figure,tr,.warning,svg,p,pre{{break-inside:avoid}} section>p{{break-after:avoid}} .scroll{{overflow:visible}} th,td{{padding:4px 6px}}
*{{-webkit-print-color-adjust:exact;print-color-adjust:exact}}}}
"""

STYLE = (
    f":root{{{_LIGHT}}}\n@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    f"{_RULES}{_COLOURS}{_PRINT}"
)
