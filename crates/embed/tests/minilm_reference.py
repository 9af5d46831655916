"""Makes minilm_reference.jsonl: vectors of the f32 weights by the definition of the encoder, in 64-bit floats.

    pip install numpy safetensors tokenizers
    python minilm_reference.py <folder of the f32 model, see models/make>
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

FOLDER = Path(sys.argv[1])
WEIGHTS = load_file(FOLDER / "model.safetensors")
TOKENIZER = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
TOKENIZER.no_padding()
TOKENIZER.enable_truncation(256)
erf = np.vectorize(math.erf)


def norm(x, name):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-12) * WEIGHTS[name + ".weight"] + WEIGHTS[name + ".bias"]


def linear(x, name):
    return x @ WEIGHTS[name + ".weight"].T.astype(np.float64) + WEIGHTS[name + ".bias"]


def embed(text):
    ids = TOKENIZER.encode(text).ids
    x = WEIGHTS["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    x = x + WEIGHTS["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + WEIGHTS["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for number in range(6):
        layer = f"encoder.layer.{number}."
        query, key, value = [
            linear(x, layer + "attention.self." + part).reshape(-1, 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        ]
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(32)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        context = (scores @ value).transpose(1, 0, 2).reshape(-1, 384)
        x = norm(x + linear(context, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        wide = linear(x, layer + "intermediate.dense")
        wide = 0.5 * wide * (1 + erf(wide / math.sqrt(2)))
        x = norm(x + linear(wide, layer + "output.dense"), layer + "output.LayerNorm")
    mean = x.mean(0)
    return len(ids), mean / np.linalg.norm(mean)


TEXTS = [
 "", "Hello", "water", "which members spoke about the price of water",
 "The House met at half-past two o'clock. The Speaker took the chair and read prayers.",
 "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller staatlichen Gewalt.",
 "L'Assemblée nationale adopte le projet de loi de finances pour l'année à venir.",
 "日本国民は、正当に選挙された国会における代表者を通じて行動し", "Все люди рождаются свободными и равными в своем достоинстве и правах.",
 "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق", "🙂🚀 launch day! 👩‍👩‍👧‍👦 café naïve coöperate", "a\u0301e\u0301 \u200b\ufeff zero width\tand\ttabs\n\nand lines",
 "SELECT * FROM members WHERE party = 'Labor' AND year >= 1975;", "fn main() { println!(\"{}\", 6 * 7); }",
 "1234567890 3.14159 $1,000,000.00 50% 10-12-2023", "supercalifragilisticexpialidocious "*3,
 "The minister for agriculture announced that drought relief payments would be extended to farmers in the northern districts, and that applications would be received until the end of the financial year. " * 2,
 "The committee considered the evidence of the witnesses. " * 60,
 "Honourable senators, I rise to speak on the amendment to the Marine Parks Act. " + " ".join(f"Clause {n} deals with the {w} of the reef and its waters." for n,w in enumerate(["protection","mapping","use","history","ownership","fishing","mining","tourism","science","funding"]*5)),
 "Treatment of hypertension with beta blockers reduced mortality in a randomised controlled trial of 1,200 patients over five years.",
 "Boundary layer transition on a flat plate at supersonic speed with heat transfer.", "[CLS] [SEP] [MASK] special words typed by people ##ing",
]

with open(Path(__file__).with_suffix(".jsonl"), "w") as file:
    for text in TEXTS:
        tokens, vector = embed(text)
        line = {"text": text, "tokens": tokens, "vector": [round(float(value), 5) for value in vector]}
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
