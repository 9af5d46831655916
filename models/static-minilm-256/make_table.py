#!/usr/bin/env python3
"""Make a static word-vector table that imitates a sentence-embedding model.

The student is as simple as an embedder can be: a text is cut into WordPiece
tokens, each token has one row of a table, and

    v(text) = normalise(mean over tokens of row[token])

so indexing costs a lookup and an addition per token.  The rows are fitted so
that v(text) points where the teacher's vector of the same text points.

Steps
  1. texts     every *.txt file of a folder, one text a line; a file is a source
  2. teacher   vectors of the texts, and of every single token, by an ONNX model
               (mean pooling over the last hidden state, then unit length)
  3. project   the teacher's space onto its leading directions (uncentred PCA,
               so that dot products are kept as well as they can be)
  4. start     row = vector of the token alone * a / (a + frequency), through one
               linear map, the same for all tokens, fitted by least squares
  5. fit       Adam on the mean of (1 - cosine) plus a pull towards the start;
               a token that is rare in the texts stays near its starting row,
               and one never seen keeps it
  6. write     rows as int8 with one scale a row, in a safetensors file

The teacher's vectors are kept in the --cache folder, chunk by chunk, so a run
that was interrupted goes on where it stopped.  Everything runs on the CPU;
--threads is all it uses.

Needs numpy, scipy, tokenizers, onnxruntime and safetensors.

Example
  make_table.py --texts neutral/ --model model.onnx --tokenizer tokenizer.json \\
                --cache cache/ --out table.safetensors
"""

import argparse
import hashlib
import json
import os
import time
from collections import Counter
from pathlib import Path


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--texts", type=Path, required=True, help="folder of *.txt, one text a line")
    p.add_argument("--model", type=Path, required=True, help="the teacher, an ONNX encoder")
    p.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer.json")
    p.add_argument("--cache", type=Path, required=True, help="folder for the teacher's vectors")
    p.add_argument("--out", type=Path, default=Path("table.safetensors"))
    p.add_argument("--dims", type=int, default=256, help="width of a row")
    p.add_argument("--max-tokens", type=int, default=256, help="the teacher reads no further")
    p.add_argument("--minutes", type=float, default=0, help="stop the teacher after so long (0: never)")
    p.add_argument("--skip", nargs="*", default=[], help="sources to leave out of the fit")
    p.add_argument("--hold-out", type=float, default=0.05, help="part of the texts kept for validation")
    p.add_argument("--sif", type=float, default=3e-4, help="a in the starting weight a / (a + frequency)")
    p.add_argument("--pull", type=float, default=0.015, help="strength of the pull towards the start")
    p.add_argument("--epochs", type=int, default=6)
    p.add_argument("--batch", type=int, default=1024, help="texts in a step of the fit")
    p.add_argument("--rate", type=float, default=0.006, help="first step length of Adam; falls to zero")
    p.add_argument("--seed", type=int, default=20261115)
    p.add_argument("--threads", type=int, default=1)
    return p.parse_args()


ARGS = arguments()
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(ARGS.threads)  # before numpy is loaded

import numpy as np  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from scipy.sparse import csr_matrix  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHUNK = 2048  # texts in a cached piece of teacher vectors


def say(*words):
    print(time.strftime("%H:%M:%S"), *words, flush=True)


def unit(x):
    """Rows of x scaled to length one; a zero row stays zero."""
    norm = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(norm > 0, norm, 1)


# 1. Texts -------------------------------------------------------------------


def read_texts(folder, rng):
    """All texts without repeats, in a random order, and the source of each."""
    found = {}
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line := line.strip():
                found.setdefault(line, path.stem)
    pairs = list(found.items())
    return zip(*(pairs[i] for i in rng.permutation(len(pairs))))


def load_tokenizer(path):
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


# 2. Teacher -----------------------------------------------------------------


class Teacher:
    """An ONNX encoder: token ids in, one unit vector a text out."""

    def __init__(self, model, threads, cls, sep, max_tokens):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.cls, self.sep, self.max_tokens = cls, sep, max_tokens

    def __call__(self, ids, batch_tokens=1024):
        """Vectors of texts given as lists of token ids without special tokens."""
        ids = [[self.cls, *t[: self.max_tokens - 2], self.sep] for t in ids]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))  # little padding
        out, start = None, 0
        while start < len(order):
            stop = start + 1
            while stop < len(order) and (stop + 1 - start) * len(ids[order[stop]]) <= batch_tokens:
                stop += 1
            vectors = self.run([ids[i] for i in order[start:stop]])
            if out is None:
                out = np.zeros((len(ids), vectors.shape[1]), np.float32)
            out[order[start:stop]] = vectors
            start = stop
        return out

    def run(self, batch):
        width = max(map(len, batch))
        ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self.session.run(None, {k: v for k, v in feed.items() if k in self.inputs})[0]
        return unit((hidden * mask[:, :, None]).sum(1) / mask.sum(1)[:, None])


def cached(path, make):
    if not path.exists():
        part = path.with_suffix(".part.npy")
        np.save(part, make())
        part.rename(path)
    return np.load(path)


def teach(teacher, ids, texts, cache, minutes):
    """Teacher vectors of the first texts: all of them, or as many as time allows."""
    started, vectors = time.time(), []
    for at in range(0, len(ids), CHUNK):
        name = hashlib.sha256("\n".join(texts[at : at + CHUNK]).encode()).hexdigest()[:16]
        path = cache / f"texts-{name}.npy"
        if minutes and time.time() - started > 60 * minutes and not path.exists():
            break
        vectors.append(cached(path, lambda: teacher(ids[at : at + CHUNK]).astype(np.float16)))
        say(f"teacher: {min(at + CHUNK, len(ids))} of {len(ids)} texts")
    return np.concatenate(vectors).astype(np.float32)


# 3. Projection ----------------------------------------------------------------


def principal_directions(vectors, dims):
    """The dims leading directions [width, dims] and the part of the energy they keep."""
    values, directions = np.linalg.eigh(vectors.T @ vectors)
    keep = directions[:, ::-1][:, :dims]
    return keep, values[::-1][:dims].sum() / values.sum()


# 4. Start -----------------------------------------------------------------------


def starting_rows(alone, counts, bags, target, train, sif):
    """Rows from the teacher's vectors of single tokens, for seen and unseen tokens alike.

    The weighted means of single-token vectors lie apart from the vectors of whole
    texts; one linear map for all tokens, by least squares, brings them together.
    """
    weight = (sif / (sif + counts / counts.sum())).astype(np.float32)[:, None]
    plain = weight * np.hstack([alone, np.ones_like(weight)]).astype(np.float32)
    square, product = 0.0, 0.0
    for at in range(0, len(train), 4096):
        part = train[at : at + 4096]
        matrix, tokens = bags.matrix(part)
        mean = matrix @ plain[tokens]
        mean /= np.maximum(mean[:, -1:], 1e-6)  # the last column carries the weights
        square = square + mean.T @ mean
        product = product + mean.T @ target[part]
    ridge = 1e-3 * np.trace(square) / len(square) * np.eye(len(square))
    return (plain @ np.linalg.solve(square + ridge, product)).astype(np.float32)


# 5. Fit -----------------------------------------------------------------------


class Bags:
    """Texts as bags of tokens: for each text its distinct tokens and their shares."""

    def __init__(self, ids):
        self.tokens, self.shares = [], []
        for text in ids:
            tokens, counts = np.unique(np.asarray(text, np.int32), return_counts=True)
            self.tokens.append(tokens)
            self.shares.append((counts / max(1, counts.sum())).astype(np.float32))

    def matrix(self, which):
        """(sparse [texts, distinct tokens], the distinct tokens) of a selection of texts."""
        tokens = np.concatenate([self.tokens[i] for i in which])
        shares = np.concatenate([self.shares[i] for i in which])
        starts = np.cumsum([0, *(len(self.tokens[i]) for i in which)])
        distinct, columns = np.unique(tokens, return_inverse=True)
        return csr_matrix((shares, columns, starts), shape=(len(which), len(distinct))), distinct


def cosines(rows, bags, which, target):
    """Cosine of student and teacher for each of a selection of texts."""
    found = []
    for at in range(0, len(which), 4096):
        part = which[at : at + 4096]
        matrix, tokens = bags.matrix(part)
        found.append((unit(matrix @ rows[tokens]) * target[part]).sum(1))
    return np.concatenate(found)


def fit(start, bags, target, train, held, args, rng):
    """Adam, with one step length a row, on mean(1 - cosine) and the pull to the start."""
    rows = start.copy()
    momentum, variance = np.zeros_like(rows), np.zeros((len(rows), 1), np.float32)
    visits = np.zeros((len(rows), 1))  # steps in which a token was met
    steps = args.epochs * -(-len(train) // args.batch)
    step = 0
    for epoch in range(args.epochs):
        order, total = rng.permutation(train), 0.0
        for at in range(0, len(order), args.batch):
            batch = order[at : at + args.batch]
            matrix, tokens = bags.matrix(batch)
            mean = matrix @ rows[tokens]
            norm = np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-6)
            found, wanted = mean / norm, target[batch]
            cosine = (found * wanted).sum(1, keepdims=True)
            total += float(cosine.sum())
            slope = matrix.T @ ((cosine * found - wanted) / norm)
            slope += args.pull * (rows[tokens] - start[tokens])
            visits[tokens] += 1
            momentum[tokens] = 0.9 * momentum[tokens] + 0.1 * slope
            variance[tokens] = 0.999 * variance[tokens] + 0.001 * (slope**2).mean(1, keepdims=True)
            first = momentum[tokens] / (1 - 0.9 ** visits[tokens])
            second = np.sqrt(variance[tokens] / (1 - 0.999 ** visits[tokens])) + 1e-8
            rows[tokens] -= (args.rate * (1 - step / steps) * first / second).astype(np.float32)
            step += 1
        say(
            f"fit: epoch {epoch + 1}, training {total / len(order):.4f}, "
            f"held out {cosines(rows, bags, held, target).mean():.4f}"
        )
    return rows


# 6. Table ---------------------------------------------------------------------


def quantise(rows):
    """int8 rows and the scale of each: row = scale * int8."""
    scale = (np.abs(rows).max(1) / 127).astype(np.float32)
    whole = np.rint(rows / np.where(scale > 0, scale, 1)[:, None])
    return whole.astype(np.int8), scale


def main():
    args, rng = ARGS, np.random.default_rng(ARGS.seed)
    args.cache.mkdir(parents=True, exist_ok=True)

    texts, sources = read_texts(args.texts, rng)
    tokenizer = load_tokenizer(args.tokenizer)
    words = tokenizer.get_vocab_size()
    special = [tokenizer.token_to_id(t) for t in SPECIAL]
    ids = [e.ids for e in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
    ids = [t[: args.max_tokens - 2] for t in ids]
    say(f"{len(texts)} texts, {sum(map(len, ids))} tokens, {len(set(sources))} sources")

    teacher = Teacher(
        args.model, args.threads, tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]"),
        args.max_tokens,
    )
    alone = cached(args.cache / "tokens.npy", lambda: teacher([[i] for i in range(words)]))
    vectors = teach(teacher, ids, texts, args.cache, args.minutes)
    use = [i for i in range(len(vectors)) if sources[i] not in args.skip]
    vectors, ids, sources = vectors[use], [ids[i] for i in use], [sources[i] for i in use]

    directions, kept = principal_directions(vectors, args.dims)
    target = unit(vectors @ directions)
    say(f"{len(ids)} texts have vectors; {args.dims} directions keep {kept:.4f} of the energy")

    bags = Bags(ids)
    held = np.arange(0, len(ids), round(1 / args.hold_out))  # the order is random already
    train = np.setdiff1d(np.arange(len(ids)), held)
    counts = np.bincount(np.concatenate([np.asarray(t, int) for t in ids]), minlength=words)
    start = starting_rows(alone, counts, bags, target, train, args.sif)
    start[special] = 0
    before = cosines(start, bags, held, target)
    rows = fit(start, bags, target, train, held, args, rng)
    rows[special] = 0

    whole, scale = quantise(rows)
    after = cosines(whole * scale[:, None], bags, held, target)
    length = np.array([len(ids[i]) for i in held])
    report = {
        "texts": len(ids),
        "tokens": int(counts.sum()),
        "vocabulary_seen": int((counts > 0).sum()),
        "energy_kept": round(float(kept), 4),
        "held_out_texts": len(held),
        "cosine_start": round(float(before.mean()), 4),
        "cosine_float": round(float(cosines(rows, bags, held, target).mean()), 4),
        "cosine_int8": round(float(after.mean()), 4),
        "cosine_int8_by_tokens": {
            f"{low}-{high}": round(float(after[(length >= low) & (length <= high)].mean()), 4)
            for low, high in ((1, 8), (9, 20), (21, 60), (61, 120), (121, 254))
        },
        "settings": {
            k: getattr(args, k)
            for k in "dims max_tokens sif pull epochs batch rate seed hold_out skip".split()
        },
        "texts_by_source": dict(sorted(Counter(sources).items())),
    }
    save_file(
        {"rows": whole, "rows.scale": scale},
        str(args.out),
        metadata={"teacher": "all-MiniLM-L6-v2", "tokenizer": "bert-base-uncased WordPiece"},
    )
    args.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    say(json.dumps(report))


if __name__ == "__main__":
    main()
