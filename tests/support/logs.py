"""Small logs of language-model tools, whole and broken."""

import copy
import io
import json
import zipfile

import numpy as np

N_CHOICES = (3, 4, 5)


def made_up(n=60, seed=0, n_choices=N_CHOICES):
    """Log-likelihoods of questions, and the right choices."""
    rng = np.random.default_rng(seed)
    scores = [rng.normal(-16.0, 2.0, size=rng.choice(n_choices)).tolist() for _ in range(n)]
    right = np.array([rng.integers(len(row)) for row in scores])
    return scores, right


def words(row, i):
    return [f"{'abcde'[j]} word {i}" for j in range(len(row))]


def lm_eval_line(i, row, right, target="index", *, old=False, doc=None, **members):
    """A line of lm-evaluation-harness; older versions have floats and lists."""
    texts = words(row, i)
    if target == "letter":
        texts = list("ABCDE"[: len(row)])
    contexts, continuations = [f"Question {i}:"] * len(row), [f" {text}" for text in texts]
    if target == "contexts":
        contexts, continuations = texts, [" and so on"] * len(row)
    said = {
        "index": str(right),
        "letter": "ABCDE"[right],
        "text": texts[right],
        "contexts": "and so on",
    }[target]
    requests = list(zip(contexts, continuations, strict=True))
    responses = [[x, False] if old else [repr(x), "False"] for x in row]
    arguments = {f"gen_args_{j}": {"arg_0": a, "arg_1": b} for j, (a, b) in enumerate(requests)}
    return {
        "doc_id": i,
        "doc": {"question": f"Question {i}:", "gold": int(right)} if doc is None else doc,
        "target": said,
        "arguments": [list(pair) for pair in requests] if old else arguments,
        "resps": [[response] for response in responses],
        "filtered_resps": responses,
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"hash {i}",
        "acc": float(int(np.argmax(row)) == right),
        **members,
    }


def lm_eval_lines(n=60, target="index", seed=0, **options):
    scores, right = made_up(n, seed)
    return [
        lm_eval_line(i, row, int(y), target, **options)
        for i, (row, y) in enumerate(zip(scores, right, strict=True))
    ]


def as_lines(objects):
    return "".join(json.dumps(each) + "\n" for each in objects).encode()


def made_up_tokens(n_texts=12, length=9, vocabulary=40, seed=0):
    """Log-probabilities of every position, and its token."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_texts, length, vocabulary)) * 2.0
    logs = z - np.log(np.exp(z).sum(axis=2, keepdims=True))
    tokens = rng.integers(vocabulary, size=(n_texts, length))
    return logs, tokens


def vllm_line(logs, tokens, k):
    """`prompt_logprobs` of a text: k entries, and the token itself if it is not among them."""
    entries = [None]
    for row, token in zip(logs, tokens, strict=True):
        order = np.argsort(-row)
        kept = dict.fromkeys([int(token), *order[:k].tolist()])
        rank = {int(t): r + 1 for r, t in enumerate(order)}
        entries.append(
            {
                str(t): {"logprob": float(row[t]), "rank": rank[t], "decoded_token": "\ufffd"}
                for t in kept
            }
        )
    choice = {"index": 0, "text": "", "logprobs": None, "prompt_logprobs": entries}
    choice["prompt_token_ids"] = [0, *map(int, tokens)]
    return {"id": "cmpl", "object": "text_completion", "model": "m", "choices": [choice]}


def openai_line(logs, tokens, k):
    """A chat completion; all tokens have the same text and different bytes."""

    def entry(token, row):
        return {"token": "\ufffd", "bytes": [200, int(token)], "logprob": float(row[token])}

    content = [
        {**entry(t, row), "top_logprobs": [entry(j, row) for j in np.argsort(-row)[:k]]}
        for row, t in zip(logs, tokens, strict=True)
    ]
    choice = {"index": 0, "logprobs": {"content": content}, "message": {"content": "text"}}
    return {"id": "chatcmpl", "object": "chat.completion", "model": "m", "choices": [choice]}


def inspect_log(n=60, seed=0, prefix=(), space=" "):
    """A log of inspect_ai: the letter comes after the tokens of `prefix`."""
    scores, right = made_up(n, seed, (4,))
    samples = []
    for i, (row, y) in enumerate(zip(scores, right, strict=True)):
        logs = np.array(row) - np.log(np.exp(row).sum()) - 0.01
        best = int(np.argmax(logs))
        top = [
            {"token": f"{space}{'ABCD'[j]}", "logprob": float(logs[j])}
            for j in np.argsort(-logs).tolist()
        ]
        top.append({"token": "x", "logprob": -30.0})
        content = [{"token": token, "logprob": 0.0, "top_logprobs": []} for token in prefix]
        content.append({**top[0], "top_logprobs": top})
        completion = "".join(prefix) + f" {'ABCD'[best]}"
        output = {"choices": [{"logprobs": {"content": content}}], "completion": completion}
        samples.append(
            {
                "id": i + 1,
                "epoch": 1,
                "input": f"Question {i}",
                "choices": ["p", "q", "r", "s"],
                "target": "ABCD"[y],
                "output": output,
                "scores": {"match": {"value": "C" if best == y else "I", "answer": "ABCD"[best]}},
                "error": None,
            }
        )
    return {"version": 2, "status": "success", "eval": {"task": "letters"}, "samples": samples}


def as_eval(log, zstandard=False):
    """The bytes of an .eval archive."""
    header = {name: part for name, part in log.items() if name != "samples"}
    members = {"header.json": header} | {
        f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample for sample in log["samples"]
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in members.items():
            archive.writestr(name, json.dumps(part))
    return _recompressed(buffer.getvalue()) if zstandard else buffer.getvalue()


def _recompressed(data):
    """A zip archive with Zstandard members, which zipfile does not write before Python 3.14."""
    import zstandard

    source, target, directory = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO(), b""
    for info in source.infolist():
        content = zstandard.ZstdCompressor().compress(source.read(info))
        offset, name = target.tell(), info.filename.encode()
        sizes = b"".join(
            size.to_bytes(4, "little") for size in (info.CRC, len(content), info.file_size)
        )
        common = b"\x3f\0\0\0" + (93).to_bytes(2, "little") + b"\0\0\x21\0" + sizes
        common += len(name).to_bytes(2, "little") + b"\0\0"
        target.write(b"PK\3\4" + common + name + content)
        directory += b"PK\1\2\x3f\0" + common + b"\0" * 10 + offset.to_bytes(4, "little") + name
    start, count = target.tell(), len(source.infolist()).to_bytes(2, "little")
    end = b"PK\5\6\0\0\0\0" + count + count + len(directory).to_bytes(4, "little")
    return target.getvalue() + directory + end + start.to_bytes(4, "little") + b"\0\0"


def _edited(objects, line, **members):
    """The same lines, one of them changed; None takes a member away."""
    objects = copy.deepcopy(objects)
    for name, value in members.items():
        if value is None:
            del objects[line][name]
        else:
            objects[line][name] = value
    return objects


def _with_response(objects, line, value):
    objects = copy.deepcopy(objects)
    objects[line]["filtered_resps"][1] = value
    return objects


def _broken_lm_eval():
    lines = lm_eval_lines(20)
    text = as_lines(lines)
    two = lm_eval_lines(20, "contexts")
    digits = [
        lm_eval_line(i, [-1.0, -2.0], i % 2, doc={})
        | {"arguments": {f"gen_args_{j}": {"arg_0": "?", "arg_1": f" {1 - j}"} for j in range(2)}}
        for i in range(4)
    ]
    ambiguous = [line | {"acc": 0.0, "filtered_resps": [["-1", "False"]] * 3} for line in lines[:1]]
    ambiguous[0]["arguments"] = {
        f"gen_args_{j}": {"arg_0": "?", "arg_1": f" {t}"} for j, t in enumerate("021")
    }
    ambiguous[0]["target"] = "2"
    generated = {"arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {"until": ["."]}}}}
    rolling = {"arguments": {"gen_args_0": {"arg_0": "?"}}, "filtered_resps": ["-30.5"]}
    single = {
        "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": " x"}},
        "filtered_resps": [["-30.5", "True"]],
    }
    yield "cut off", text[:-30], {}, "line 20 is not JSON: it is cut off"
    yield "a list in the place of a line", text + b"[1, 2]\n", {}, "line 21 must be a JSON object"
    yield "deep nesting", text + b"[" * 100_000, {}, "line 21 is not JSON"
    wrong = 1.0 - lines[7]["acc"]
    yield (
        "acc that contradicts",
        as_lines(_edited(lines, 7, acc=wrong)),
        {},
        "line 8: read as index",
    )
    yield (
        "acc of a half",
        as_lines(_edited(lines, 7, acc=0.5)),
        {},
        "line 8 has acc 0.5, a share",
    )
    yield (
        "acc of 2",
        as_lines(_edited(lines, 7, acc=2)),
        {},
        "line 8 has acc 2, expected 0 or 1",
    )
    yield "acc of one line only", as_lines(_edited(lines, 7, acc=None)), {}, "line 8 has nothing as"
    no_acc = [{k: v for k, v in line.items() if k != "acc"} for line in lines]
    yield "no acc", as_lines(no_acc), {}, "none of acc, acc_norm", "target="
    yield "a document twice", as_lines([*lines, lines[3]]), {}, "line 21 repeats the document 3 of"
    yield "no target", as_lines(_edited(lines, 0, target=None)), {}, "line 1 has no member 'target'"
    yield (
        "target of no choice",
        as_lines(_edited(lines, 2, target="9", doc={})),
        {},
        "line 3: read as",
    )
    yield (
        "no arguments",
        as_lines(_edited(lines, 4, arguments=None)),
        {},
        "line 5 has no member 'arg",
    )
    yield (
        "other arguments",
        as_lines(_edited(lines, 4, arguments={"a": 1})),
        {},
        "line 5 must have ar",
    )
    yield (
        "one more response",
        as_lines(_edited(lines, 4, filtered_resps=[["-1", "False"]] * 7)),
        {},
        "line 5 has",
        "7 responses: it is damaged",
    )
    yield (
        "NaN",
        as_lines(_with_response(lines, 5, ["nan", "False"])),
        {},
        "line 6 has 'nan' as a log-l",
    )
    yield (
        "NaN of JSON",
        as_lines(_with_response(lines, 5, [float("nan"), False])),
        {},
        "line 6 has nan",
    )
    yield (
        "-9999.0",
        as_lines(_with_response(lines, 5, ["-9999.0", "False"])),
        {},
        "line 6",
        "-9999.0",
    )
    yield (
        "positive",
        as_lines(_with_response(lines, 5, ["0.7", "False"])),
        {},
        "line 6",
        "at most 0",
    )
    nothing = [["-inf", "False"]] * len(lines[5]["filtered_resps"])
    yield (
        "-inf only",
        as_lines(_edited(lines, 5, filtered_resps=nothing, acc=lines[5]["acc"])),
        {},
        "line 6 has log-likelihoods of -inf only",
    )
    yield "a huge integer", as_lines(_with_response(lines, 5, [-(10**400), 0])), {}, "line 6 has"
    yield "a word", as_lines(_with_response(lines, 5, ["-1,5", "False"])), {}, "line 6 has '-1,5'"
    yield (
        "a bare number",
        as_lines(_with_response(lines, 5, -1.5)),
        {},
        "line 6 has -1.5 as a response",
    )
    yield "generation", as_lines([lines[0] | generated]), {}, "line 1 has text that was generated"
    yield "perplexity", as_lines([lines[0] | rolling]), {}, "loglikelihood_rolling"
    yield (
        "one request",
        as_lines([lines[0] | single]),
        {},
        "line 1 has one request for each document",
    )
    yield "several right", as_lines(_edited(lines, 0, target="[0, 2]")), {}, "several right answers"
    yield (
        "two readings",
        as_lines(ambiguous),
        {},
        "index and text agree with every accuracy",
        "line 1",
    )
    yield "the wrong reading", as_lines(digits), {"target": "text"}, "read as text", "line"
    yield (
        "an unknown reading",
        text,
        {"target": "colour"},
        "target must be one of 'index'",
        "'doc:gold'",
    )
    yield "an unknown filter", text, {"filter": "strict"}, "has no filter 'strict', it has 'none'"
    yield (
        "no unconditional",
        text,
        {"loglikelihood": "mutual_info"},
        "line 1 has no unconditional log-",
    )
    yield (
        "mutual information without requests",
        as_lines(_edited(lines, 0, acc_mutual_info=1.0)),
        {},
        "line 1 has acc_mutual_info, but no unconditional requests",
    )
    yield "lengths of contexts", as_lines(two), {"loglikelihood": "chars"}, "line 1", "contexts"
    contradicting = [line | {"acc_norm": 1.0 - line["acc"]} for line in lines]
    yield (
        "acc_norm that contradicts",
        as_lines(contradicting),
        {"loglikelihood": "chars"},
        "line 1 has acc_norm",
        "which the argmax",
    )
    yield (
        "another option",
        text,
        {"given_text": True},
        "given_text is not for logs of lm-evaluation",
    )


def _broken_tokens():
    logs, tokens = made_up_tokens(3)
    vllm = [vllm_line(a, b, 5) for a, b in zip(logs, tokens, strict=True)]
    chat = [openai_line(a, b, 5) for a, b in zip(logs, tokens, strict=True)]
    given = {"given_text": True}

    def changed(lines, change):
        lines = copy.deepcopy(lines)
        change(lines[1]["choices"][0])
        return as_lines(lines)

    def entry(choice):
        return choice["prompt_logprobs"][3]

    def token(choice):
        return choice["logprobs"]["content"][3]

    yield (
        "generated",
        as_lines(chat),
        {},
        "line 1 has tokens that the model generated",
        "given_text=True",
    )
    yield (
        "no logprobs",
        changed(vllm, lambda c: c.update(prompt_logprobs=None)),
        {},
        "line 2 has no log",
    )
    yield (
        "two choices",
        as_lines([chat[0] | {"choices": chat[0]["choices"] * 2}]),
        given,
        "line 1 has 2",
    )
    yield (
        "no ranks",
        changed(vllm, lambda c: [v.pop("rank") for v in entry(c).values()]),
        {},
        "line 2 token 3 has the rank None",
    )
    yield (
        "another token",
        changed(vllm, lambda c: c["prompt_token_ids"].__setitem__(3, 999)),
        {},
        "line 2 token 3 is the token 999, which has no entry",
    )
    yield (
        "fewer ids",
        changed(vllm, lambda c: c["prompt_token_ids"].pop()),
        {},
        "line 2 has 9 prompt_to",
    )
    yield (
        "ids that are words",
        changed(vllm, lambda c: entry(c).update(word={"logprob": -1.0, "rank": 1})),
        {},
        "line 2 token 3 has 'word' as a token id",
    )
    yield "nothing known", as_lines([vllm_line(logs[0], tokens[0], 0)]), {}, "token itself only"
    yield (
        "NaN of a token",
        changed(chat, lambda c: token(c).update(logprob=float("nan"))),
        given,
        "line 2 token 3 has nan",
    )
    yield (
        "no bytes",
        changed(chat, lambda c: token(c).update(bytes=None)),
        given,
        "line 2",
        "without byt",
    )
    yield (
        "bytes above 255",
        changed(chat, lambda c: token(c).update(bytes=[288, 66])),
        given,
        "line 2 token 3",
        "expected 0 to 255",
    )
    yield (
        "no top_logprobs",
        changed(chat, lambda c: token(c).update(top_logprobs=[])),
        given,
        "line 2 token 3 has no top_logprobs",
    )
    yield (
        "an entry twice",
        changed(chat, lambda c: token(c)["top_logprobs"].append(token(c)["top_logprobs"][0])),
        given,
        "line 2 token 3 has two top_logprobs with the same bytes",
    )
    yield (
        "a token outside that is likelier",
        changed(chat, lambda c: token(c).update(bytes=[1], logprob=-0.001)),
        given,
        "line 2 token 3",
        "tokens do not match",
    )
    yield (
        "texts for tokens",
        changed(chat, lambda c: c.update(logprobs={"tokens": ["a"], "token_logprobs": [-1.0]})),
        given,
        "line 2 names tokens by their text only",
    )
    yield (
        "sums above 1",
        changed(
            chat, lambda c: [e.update(logprob=-0.1) for e in [token(c), *token(c)["top_logprobs"]]]
        ),
        given,
        "line 2",
        "sums to",
    )


def _broken_inspect():
    log = inspect_log(15)

    def changed(change, number=4):
        edited = copy.deepcopy(log)
        change(edited["samples"][number])
        return json.dumps(edited).encode()

    def content(sample):
        return sample["output"]["choices"][0]["logprobs"]["content"][0]

    def scored(sample):
        sample["scores"]["match"]["value"] = "IC"["CI".index(sample["scores"]["match"]["value"])]

    yield "cut off", json.dumps(log).encode()[:-40], {}, "is not JSON: it is cut off"
    yield "not finished", json.dumps(log | {"status": "error"}).encode(), {}, "status 'error'"
    shuffled = {"steps": [{"solver": "multiple_choice", "params": {"shuffle": True}}]}
    yield (
        "shuffled",
        json.dumps(log | {"plan": shuffled}).encode(),
        {},
        "choices that the solver shuf",
    )
    several = {"steps": [{"solver": "multiple_choice", "params": {"multiple_correct": True}}]}
    yield "several", json.dumps(log | {"plan": several}).encode(), {}, "with several right answers"
    yield "no samples", json.dumps(log | {"samples": None}).encode(), {}, "has no samples"
    yield (
        "all failed",
        json.dumps(
            log | {"samples": [s | {"error": {"message": "no"}} for s in log["samples"]]}
        ).encode(),
        {},
        "no sample that was finished",
    )
    yield "no choices", changed(lambda s: s.update(choices=None)), {}, "sample 5 has no choices"
    yield (
        "two targets",
        changed(lambda s: s.update(target=["A", "B"])),
        {},
        "sample 5 has several right",
    )
    yield (
        "a target that is no letter",
        changed(lambda s: s.update(target="Z")),
        {},
        "sample 5",
        "'Z'",
    )
    yield (
        "no logprobs",
        changed(lambda s: s["output"]["choices"][0].update(logprobs=None)),
        {},
        "sample 5 has no logprobs; run the task with",
    )
    yield (
        "no letter",
        changed(lambda s: content(s).update(token="The")),
        {},
        "sample 5 has no token",
    )
    yield (
        "letters outside",
        changed(lambda s: content(s).update(top_logprobs=content(s)["top_logprobs"][:1])),
        {},
        "sample 5 has 3 of 4 letters outside",
    )
    yield "a score that contradicts", changed(scored), {}, "sample 5 answers", "but its score is"
    yield (
        "a sample twice",
        changed(lambda s: s.update(id=1)),
        {},
        "sample 1 is there twice in epoch 1",
    )
    yield (
        "an option",
        json.dumps(log).encode(),
        {"target": "index"},
        "target is not for logs of inspect",
    )


def broken():
    """Name, name of the file, content, options, fragments of the message."""
    lm_eval = "samples_sums_2026-01-01T00-00-00.jsonl"
    for file, cases in (
        (lm_eval, _broken_lm_eval()),
        ("tokens.jsonl", _broken_tokens()),
        ("run.json", _broken_inspect()),
    ):
        for name, content, options, *fragments in cases:
            yield f"{file.split('_')[0]}, {name}", file, content, options, (file, *fragments)
    archive = as_eval(inspect_log(3))
    yield "eval, cut off", "run.eval", archive[:-100], {}, ("run.eval is not a zip archive",)
    damaged = archive.replace(archive[60:70], bytes(10))
    yield "eval, damaged", "run.eval", damaged, {}, ("run.eval", "checksum")
    yield "eval, text", "run.eval", b"{}", {}, ("run.eval is not a zip archive",)
    yield "empty", "run.jsonl", b"", {}, ("run.jsonl", "no log")
    yield (
        "other lines",
        "run.jsonl",
        b'{"label": 0, "probs": [1, 0]}\n',
        {},
        ("no log", "ckce.scan"),
    )
    yield "results", "results.json", b'{"results": {}}', {}, ("results.json", "no log")
