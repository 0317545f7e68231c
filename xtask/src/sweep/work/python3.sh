# Exercises of the standard library that print checksums or values.
status=0
PYTHONHASHSEED=0 python3 - <<'PY' || status=$?
import ast, asyncio, bisect, collections, csv, dataclasses, decimal, difflib, fractions, functools, hashlib, heapq, io
import itertools, json, pickle, random, re, sqlite3, statistics, string, struct, subprocess, sys, textwrap, threading
import tokenize, unicodedata, xml.etree.ElementTree as tree, zlib

def show(name, value):
    print(name, hashlib.sha256(repr(value).encode()).hexdigest()[:16])

source = open(textwrap.__file__).read()
show("ast", ast.dump(ast.parse(source)))
show("tokenize", [t.string for t in tokenize.generate_tokens(io.StringIO(source).readline)])
show("re", re.findall(r"\b(\w+)\b(?=.*\1)", source))
show("difflib", list(difflib.unified_diff(source.split(), sorted(source.split()))))
generator = random.Random(7)
numbers = [generator.random() for _ in range(20000)]
show("sort", sorted(numbers)); show("heap", heapq.nlargest(50, numbers)); show("mean", statistics.fmean(numbers))
show("bisect", [bisect.bisect(sorted(numbers[:999]), n) for n in numbers])
decimal.getcontext().prec = 60
show("decimal", decimal.Decimal(2).sqrt() ** 7); show("fractions", sum(fractions.Fraction(1, n) for n in range(1, 400)))
show("integers", functools.reduce(lambda a, b: a * b, range(1, 1000)))
show("struct", b"".join(struct.pack("<dIq", n, int(n * 1e6), int(n * 1e15)) for n in numbers))
show("zlib", zlib.compress(source.encode() * 20)); show("pickle", pickle.loads(pickle.dumps(numbers)))
show("json", json.loads(json.dumps({"n": numbers, "s": source}))); show("counter", collections.Counter(source).most_common())
show("csv", list(csv.reader(io.StringIO(source)))); show("unicode", [unicodedata.normalize("NFKD", chr(c)) for c in range(20000)])
root = tree.Element("r")
for n in numbers[:2000]: tree.SubElement(root, "n", v=str(n)).text = string.ascii_letters
show("xml", tree.tostring(tree.fromstring(tree.tostring(root))))
database = sqlite3.connect(":memory:"); database.execute("create table t(a)")
database.executemany("insert into t values(?)", [(n,) for n in numbers]); show("sqlite3", database.execute("select sum(a), max(a) from t").fetchall())

@dataclasses.dataclass(order=True)
class Point: x: int; y: int = 0
show("dataclass", sorted(Point(i % 7, -i) for i in range(1000)))
async def twice(n):
    await asyncio.sleep(0)
    return 2 * n
async def all_twice(): return await asyncio.gather(*map(twice, range(2000)))
show("asyncio", asyncio.run(all_twice()))
total, lock = [0], threading.Lock()
def add():
    for _ in range(20000):
        with lock: total[0] += 1
threads = [threading.Thread(target=add) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]; print("threads", total[0])
caught = 0
for n in range(20000):
    try: {}[n] if n % 3 else 1 / 0
    except (KeyError, ZeroDivisionError): caught += 1
print("exceptions", caught)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
try: deep(10 ** 6)
except RecursionError as error: print("recursion", error)
print("child", subprocess.run([sys.executable, "-c", "print(sum(range(10**6)))"], capture_output=True, text=True).stdout.strip())
show("permutations", sum(1 for p in itertools.permutations(range(8)) if p[0] < p[-1]))
sys.exit(3)
PY
[ $status = 3 ]
