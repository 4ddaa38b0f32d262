#!/usr/bin/env python3
"""Texts with what openai-whisper's normalizers make of them, for src/text/normalizer.

    tools/normalizer_cases.py                        writes tests/data/normalizer_golden.jsonl
    tools/normalizer_cases.py --check RESULT.json    compares a result of `oasr eval`

A line of the golden file is [text, EnglishTextNormalizer's, BasicTextNormalizer's]. --check compares the
normalized texts of a result (`--normalizer whisper-english` or `basic`) with the reference, line by line;
`oasr eval --score TEXTS TEXTS` gives one for any texts. Needs openai-whisper 20250625; see word_error.py.
"""

import argparse
import json
import random
import sys
from pathlib import Path

from word_error import whisper_normalizers

ROOT = Path(__file__).resolve().parent.parent

# One a line: the steps of the normalizer, and where it is odd.
CASES = """
two
forty one
seven thirty six
eighteen eighty four
twenty ten
three point seven million
six point one billions
450 thousand
450 thousand pounds
$35 million
€12.7 million
£81 thousands
one double o nine
nine thousand thirty four
sixty two thousand five hundred ten
sixty two thousand five hundred and ten
eighteen twenties
ninety second
seventy seven thousand and two hundred and eleventh
eight trillion
hundreds of decillions
june ninth nineteen oh four
nineth
6 28
6.28
6 point 2
eleven point 5
four point one nine euros
eighty percent
fifty five per cent
per person
five per person
double oh three
seven one one
five double two
six triple oh four
three thousandth
eighty nine thousandth
minus 40
negative
plus fourteen thousand
minus and
nine dollars and five cents
nine dollars five cents
7 cents
$0.45
$0.07
seven euros and thirty cents
five and a half million
and a half
tea and a half
sixteen and a half dollars
a380
32 nd
32nd
the 1990 s
zero
oh
o o o
one
ones
one one
one hundred
hundred one
a hundred and
a hundred and one
zero million
0 million
1,234,567.50
1.2.3.4
one point two point three
192.168.0.1
point
point five
point million
twenty point
ten twenty thirty
five hundred five hundred
double double
double
double twenty
$
$ 5
5 %
% 5
a%
100%%
5¢
-5 + 7
.5
5.
... 5
colour and grey, honour the theatre's programme
flyer / flier
He won't, can't, shan't; let's go, y'all!
I'ma tell imma gonna wanna gotta woulda coulda shoulda
ma'am, ain't it?
She'd been, he's been, they'd gone, it's gone, we'd done, he's done, she's got
it 's we 're you 'll I 'd they 've I 'm do n't
Mr. Mrs. St. Dr. Prof. Capt. Gov. Ald. Gen. Sen. Rep. Pres. Rev. Hon. Asst. Assoc. Lt. Col. Jr. Sr. Esq.
Hmm, mm, mhm, mmm, uh, um, uhm, umm, hm
hmm-mm
[music] <noise> [oops> (aside) () (a (b) c)
[never closed (nor this
café naïve Ærø œuvre Straße Łódź þorn đakovo ðe
ΟΔΟΣ ΣΑΣ
İstanbul
ﬁne ４２ ² ½ ™ Ⅳ
٣ and ٣.٥ million
你好 世界
rock 'n' roll o'clock
'quoted' "double" “curly” ‘single’
co-operate well-known e-mail
Dr. Smith paid $1,000.50 on the 3rd of May, 1999.
room 101b on floor 3c
""".strip("\n").splitlines()
WORDS = """one two six nine ten twelve nineteen twenty ninety hundred thousand million oh zero first third ninth
twelfth fifties hundredth millions and a half double triple point minus plus dollars cents pound percent per cent
5 12 0 3.5 1,000 $7 ¢9 £2.50 %, the mr. won't it's 's colour uh st th .""".split()


def cases():
    chosen = CASES + ["tab\tand\u00a0non-breaking\u2003spaces", "", " ", "\u2028line\x1cends\x85",
                      "a\nb"]
    draw = random.Random(7)
    return chosen + [" ".join(draw.choices(WORDS, k=draw.randint(3, 10))) for _ in range(160)]


def write(path):
    english, basic = whisper_normalizers()
    rows = [json.dumps([text, english(text), basic(text)], ensure_ascii=False) for text in cases()]
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    print(f"{path}: {len(rows)} cases")


def check(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    english, basic = whisper_normalizers()
    normalize = {"whisper-english": english, "basic": basic}.get(result["normalizer"])
    if normalize is None:
        sys.exit(f"{path}: the reference has no normalizer '{result['normalizer']}'")
    lines = differing = 0
    for row in result["utterances"]:
        for side in ("reference", "hypothesis"):
            lines += 1
            wanted, got = normalize(row[side]), row[f"normalized_{side}"]
            if wanted != got:
                differing += 1
                print(f"{row['id']}: {row[side]!r}\n  reference {wanted!r}\n  oasr      {got!r}")
    print(f"{path}: {lines} texts compared, {differing} differ")
    sys.exit(1 if differing else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", type=Path, metavar="RESULT.json")
    parser.add_argument("--output", type=Path, default=ROOT / "tests/data/normalizer_golden.jsonl")
    args = parser.parse_args()
    check(args.check) if args.check else write(args.output)


if __name__ == "__main__":
    main()
