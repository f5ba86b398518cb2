"""The long checks of readers and writers of graphs, each from its seed:

    python tests/soak_graphs.py CHECK [--count N] [--seed S] [--minutes M]

trips     every format and every kind of object brings a random graph back: odd names, lone nodes,
          with and without hidden causes
fuzz      broken and random texts: a graph or a ValueError of one line, within two seconds, and
          nothing is run, imported or opened meanwhile
packages  what the real packages write, read by us and by themselves, edge by edge
shipped   the networks that pgmpy carries (BIF and dagitty), ours against pgmpy's own reading;
          COUNT is the number of files, smallest first

Exit code 1 if anything differs. What is not installed is skipped, and named.
"""

import argparse
import gzip
import io
import logging
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

from cocabo.graph import Graph
from cocabo.sources import read

odd = [
    "node", "dag", "a b", '"', "\\", '\\"', "->", "#", "//", "x;y", "{", "β", "X'", "1.5", " ",
    "a->b",
    "a <-> b", "a|b", "a,b", ";", "0", "a.txt", "&lt;", "[", "graph", "network", "latent", "C:\\x",
    "/",
    "$", "/*", "a\u2028b", "é", "x=y", "<b>", "%", "''", "é́", "variable", "X" * 60,
]  # fmt: skip
plain = [f"V{i}" for i in range(12)]


def random_graph(rng, names, hidden=True, n=8):
    "A graph with some of these names; some stand alone"
    vs = rng.sample(names, rng.randint(1, min(n, len(names))))
    pairs = list(combinations(vs, 2))
    p, q = rng.choice([0, 0.2, 0.5]), rng.choice([0, 0.1, 0.3]) if hidden else 0
    return Graph(
        nodes=vs,
        directed=[e for e in pairs if rng.random() < p],
        bidirected=[e for e in pairs if rng.random() < q],
    )


# ---- trips


def matrix(g):
    "The adjacency matrix, and the names of its rows"
    order = g.order()
    at = {v: i for i, v in enumerate(order)}
    A = np.zeros((len(order), len(order)), int)
    for a, b in g.directed:
        A[at[a], at[b]] = 1
    return A, order


def simple_ways(g):
    "Copies of the graph that went through our writers and plain Python values"
    yield "str", Graph(str(g))
    yield "dot", Graph(g.to_dot())
    yield "dagitty", Graph(g.to_dagitty())
    loose = g.to_dagitty()[5:-1]
    if not g.nodes & {"dag", "network", "variable"}:  # which announce other formats
        braced = loose + "\n{" + '"' + min(g.nodes).replace("\\", "\\\\").replace('"', '\\"') + '"}'
        yield "dagitty without its first word", Graph(braced)
    yield "gml", Graph(g.to_gml())
    yield "networkx", Graph(g.to_networkx())
    yield "networkx through its own GML", Graph(nx.parse_gml(g.to_gml()))
    edges = [*g.directed, *((a, "<->", b) for a, b in g.bidirected)]
    yield "edges", Graph(edges, nodes=g.nodes)
    yield "dict", Graph({v: g.children(v) for v in g.nodes}, bidirected=g.bidirected)
    A, order = matrix(g)
    yield "matrix", Graph(A, nodes=order, bidirected=g.bidirected)
    yield "frame", Graph(pd.DataFrame(A, order, order), bidirected=g.bidirected)
    table = pd.DataFrame(
        [(a, "->", b) for a, b in g.directed] + [(a, "<->", b) for a, b in g.bidirected],
        columns=["from", "edge", "to"],
    )
    yield "table", Graph(table, nodes=g.nodes)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "g.gml.gz"
        file.write_bytes(gzip.compress(g.to_gml().encode()))
        yield "file", Graph(file)


def as_causal_learn(g):
    from causallearn.graph.Edge import Edge
    from causallearn.graph.Endpoint import Endpoint
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode

    node = {v: GraphNode(v) for v in g.order()}
    out = GeneralGraph(list(node.values()))
    for a, b in g.directed:
        out.add_edge(Edge(node[a], node[b], Endpoint.TAIL, Endpoint.ARROW))
    for a, b in g.bidirected:
        out.add_edge(Edge(node[a], node[b], Endpoint.ARROW, Endpoint.ARROW))
    return out


def as_y0(g):
    from y0.dsl import Variable
    from y0.graph import NxMixedGraph

    def v(name):
        return Variable(name)

    return NxMixedGraph.from_edges(
        nodes=[v(n) for n in g.order()],
        directed=[(v(a), v(b)) for a, b in g.directed],
        undirected=[(v(a), v(b)) for a, b in g.bidirected],
    )


def spelled_out(g):
    "The graph with its hidden causes as nodes, and their names"
    edges, hidden = list(g.directed), set()
    for i, (a, b) in enumerate(sorted(g.bidirected)):
        edges += [(f"hidden {i}", a), (f"hidden {i}", b)]
        hidden.add(f"hidden {i}")
    return edges, hidden


def as_pgmpy(g):
    from pgmpy.base import DAG

    edges, hidden = spelled_out(g)
    out = DAG(edges, latents=hidden)
    out.add_nodes_from(g.nodes)
    return out


def object_ways(g):
    "Copies of the graph that went through the objects of other packages"
    if find_spec("causallearn"):
        yield "causal-learn", Graph(as_causal_learn(g))
    if find_spec("y0"):
        yield "y0", Graph(as_y0(g))
    if find_spec("pgmpy"):
        yield "pgmpy", Graph(as_pgmpy(g))


def trips(rng, done):
    with_odd = rng.random() < 0.6
    g = random_graph(rng, odd + plain if with_odd else plain, hidden=rng.random() < 0.6)
    for way, h in simple_ways(g):
        done[way] += 1
        if h != g:
            return f"{way}: {g!r} became {h!r}"
    both = {frozenset(e) for e in g.directed} & {frozenset(e) for e in g.bidirected}
    for way, h in object_ways(g):
        if both and way == "causal-learn":
            continue  # one edge between two nodes is all that it keeps
        done[way] += 1
        if h != g:
            return f"{way}: {g!r} became {h!r}"


# ---- fuzz

pieces = [
    "A", "B", "C", "node", "edge", "graph", "graph [", "directed 1", "id", "label", "source",
    "target",
    "subgraph", "strict", "digraph", "digraph {", "dag", "dag {", "pdag", '"', '"q r"', "->", "<-",
    "<->",
    "--", "@", "{", "}", "[", "]", "(", ")", "|", ";", ",", "=", "\n", "\r", " ", "#", "//", "/*",
    "*/",
    "<", ">", "dir", "both", "arrowtail", "none", "latent", "[latent]", "[exposure]", "[o]",
    "[selected]",
    "observed", ":", "\\", "é", "'", ".", "0", "1", "-", "\x00", "\ufeff", "→", "%", "network",
    "variable",
    "probability", "network x {", "__import__('os')", "eval(", "$(", "!!python", "a.dot", "&#34;",
    "&",
]  # fmt: skip
seeds = [
    "X1 -> X2 -> Y; C -> X2; C -> Y; X1 <-> C; X2 <-> Y",
    'dag { bb="0,0,1,1" X1 [exposure,pos="0,1"]  U [latent]  U -> {X1 C} X1 -> X2 -> Y  Y [o] }',
    "x -> {y z}\nz [selected] w <-> z",
    'digraph G { node [shape=box]; A -> {B C} [dir=both]; subgraph s { "a b" -> B:n:e }; '
    "l=<b<i>> }",
    'network n { property "}"; } variable a { type discrete [ 2 ] { y, n }; } variable b { } '
    "probability ( a | b ) { (y) 0.1, 0.9; }",
    'Creator "x" graph [ directed 1 node [ id 0 label "A" ] node [ id 1 label "B &amp; C" latent 1 '
    "graphics [ x 0.5 ] ] edge [ source 0 target 1 bidirected 1 ] ]",
]


def fuzzed(rng):
    "A broken or a random text"
    way = rng.random()
    if way < 0.25:
        return rng.choice(["", " "]).join(rng.choices(pieces, k=rng.randint(0, 40)))
    if way < 0.35:
        return "".join(
            chr(rng.choice([rng.randrange(128), rng.randrange(0xD800)])) for _ in range(30)
        )
    text = random_text(rng) if way < 0.6 else rng.choice(seeds)
    for _ in range(rng.randint(0, 4)):
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        cut = text[:i] + text[min(j, i + 8) :]
        text = rng.choice(
            [cut, text[:i], text[:i] + rng.choice(pieces) + text[i:], text + text[i:j]]
        )
    if rng.random() < 0.05:
        text = text * rng.choice([10, 100])
    return text


def random_text(rng):
    g = random_graph(rng, odd + plain)
    return rng.choice([str, Graph.to_dot, Graph.to_dagitty, Graph.to_gml])(g)


watched = {"exec", "compile", "import", "open", "os.system", "os.exec", "os.posix_spawn"}
events, watching = [], [False]


def watch(event, args):
    if watching[0] and (event in watched or event.startswith(("subprocess", "socket", "pickle"))):
        events.append((event, str(args)[:80]))


def fuzz(rng, done):
    if not done:
        sys.addaudithook(watch)
        for text in seeds:
            Graph(text)
    text = fuzzed(rng)
    watching[0], start = True, time.perf_counter()
    try:
        Graph(text)
        done["read"] += 1
    except ValueError as e:
        done["refused"] += 1
        if "\n" in str(e) or len(str(e)) > 600:
            return f"the message {str(e)[:200]!r} for {text[:200]!r}"
    except Exception as e:
        return f"{type(e).__name__}: {e} for {text[:400]!r}"
    finally:
        watching[0] = False
    if events:
        return f"{events.pop()} for {text[:400]!r}"
    if time.perf_counter() - start > 2:
        return f"more than two seconds for {len(text):,} characters: {text[:200]!r}"


# ---- packages


def says(source):
    "What we read: the sets of names, directed edges, bidirected edges, hidden names"
    p = read(source)
    both = {frozenset(e) for e in p.bidirected}
    return set(p.nodes), set(p.directed), both, set(p.latents)


def random_dag(rng, names=plain):
    g = random_graph(rng, names, hidden=False)
    G = nx.DiGraph(list(g.directed))
    G.add_nodes_from(g.nodes)
    return G


def theirs(G):
    return set(G.nodes), set(G.edges), set(), set()


def networkx_gml(rng):
    text = "\n".join(nx.generate_gml(random_dag(rng, odd + plain)))
    return says(text), theirs(nx.parse_gml(text))


def networkx_dot(rng):
    G = random_dag(rng)
    text = nx.nx_pydot.to_pydot(G).to_string()
    return says(text), theirs(nx.DiGraph(nx.nx_pydot.from_pydot(parsed(text))))


def parsed(text):
    import pydot

    return pydot.graph_from_dot_data(text)[0]


def pydot_object(rng):
    G = random_dag(rng)
    return says(nx.nx_pydot.to_pydot(G)), theirs(G)


def graphviz_text(rng):
    import graphviz

    names = [n for n in odd + plain if not set(n) & set(":\\<") and n.strip()]  # ports, HTML
    G, drawn = random_dag(rng, names), graphviz.Digraph()
    for v in G:
        drawn.node(v)
    for a, b in G.edges:
        drawn.edge(a, b)
    return says(drawn), theirs(G)


def pgmpy_bif(rng):
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.readwrite import BIFReader, BIFWriter

    G = random_dag(rng, plain[:6])
    model = DiscreteBayesianNetwork(list(G.edges))
    model.add_nodes_from(G)
    for v in G:
        above = list(G.predecessors(v))
        table = np.full((2, 2 ** len(above)), 0.5)
        model.add_cpds(TabularCPD(v, 2, table, evidence=above, evidence_card=[2] * len(above)))
    text = str(BIFWriter(model))
    reader = BIFReader(string=text)
    edges = {tuple(e) for e in reader.get_edges()}
    return says(text), (set(reader.get_variables()), edges, set(), set())


def dowhy_graph(rng):
    from dowhy import CausalModel

    names = random_dag(rng).nodes
    G = nx.DiGraph([("V0", "V1"), *random_graph_edges(rng)])
    G.add_nodes_from(names)
    nx.set_node_attributes(G, {v: "yes" for v in G}, "observed")
    G.nodes["V3" if "V3" in G else "V0"]["observed"] = rng.choice(["yes", "no"])
    text = "\n".join(nx.generate_gml(G))
    seen = sorted(v for v in G if G.nodes[v]["observed"] == "yes")
    rows = pd.DataFrame(np.zeros((2, len(seen))), columns=seen)
    if not {"V0", "V1"} <= set(seen):
        return 0, 0
    inner = CausalModel(rows, treatment="V0", outcome="V1", graph=text)
    theirs_ = inner._graph._graph
    hidden = {v for v, d in theirs_.nodes(data=True) if d.get("observed") == "no"}
    ours = says(inner)
    if hidden == ours[3]:
        ours_text = says(text)
        if ours_text != ours:
            return ours_text, ours
    return ours, (set(theirs_.nodes), set(theirs_.edges), set(), hidden)


def random_graph_edges(rng):
    order = [f"V{i}" for i in range(6)]
    return [e for e in combinations(order, 2) if rng.random() < 0.4]


def causal_learn_drawn(rng):
    from causallearn.utils.GraphUtils import GraphUtils

    g = random_graph(rng, plain, n=6)
    g = Graph(nodes=g.nodes, directed=g.directed, bidirected=set(g.bidirected) - set(g.directed)
              - {(b, a) for a, b in g.directed})  # fmt: skip
    found = as_causal_learn(g)
    return says(GraphUtils.to_pydot(found).to_string()), says(found)


def y0_latent(rng):
    g = random_graph(rng, plain)
    mixed = as_y0(g)
    found = Graph(mixed.to_latent_variable_dag())
    back = Graph(found, nodes=g.nodes - found.nodes)  # y0 drops lone nodes there
    return (back, says(mixed)[1]), (g, {(a.name, b.name) for a, b in mixed.directed.edges})


makers = dict(
    networkx_gml=("networkx", networkx_gml),
    networkx_dot=("pydot", networkx_dot),
    pydot_object=("pydot", pydot_object),
    graphviz_text=("graphviz", graphviz_text),
    pgmpy_bif=("pgmpy", pgmpy_bif),
    dowhy_graph=("dowhy", dowhy_graph),
    causal_learn_drawn=("causallearn", causal_learn_drawn),
    y0_latent=("y0", y0_latent),
)


def packages(rng, done):
    name = list(makers)[sum(done.values()) % len(makers)]
    package, make = makers[name]
    if not find_spec(package):
        done[f"{name} skipped"] += 1
        return
    ours, other = make(rng)
    done[name] += 1
    if ours != other:
        return f"{name}: we read {ours}, they {other}"


# ---- shipped


def shipped(rng, done):
    from pgmpy.base import DAG
    from pgmpy.readwrite import BIFReader
    import pgmpy

    folder = Path(pgmpy.__file__).parent / "utils/example_models"
    files = sorted(
        [*folder.glob("*.bif.gz"), *folder.glob("*.txt")], key=lambda f: f.stat().st_size
    )
    if len(done) >= len(files):
        return
    file = files[len(done)]
    done[file.name] += 1
    text = "" if file.suffix == ".gz" else file.read_text(encoding="utf-8")
    if "selected" in text:  # by an outcome: refused, so the graph without the mark is compared
        try:
            return f"{file.name}: read as {Graph(file)}"
        except ValueError:
            ours = Graph(text.replace("selected,", ""))
    else:
        ours = Graph(file)
    if file.suffix == ".gz":
        reader = BIFReader(string=gzip.decompress(file.read_bytes()).decode())
        want = Graph([tuple(e) for e in reader.get_edges()], nodes=reader.get_variables())
    else:
        want = Graph(DAG.from_dagitty(text))
    if ours != want:
        return f"{file.name}: {len(ours.nodes)} and {len(want.nodes)} variables, edges differ"


checks = dict(trips=trips, fuzz=fuzz, packages=packages, shipped=shipped)


def quietly(f, *args):
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        return f(*args)


if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("check", choices=checks)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--minutes", type=float, default=15)
    a = p.parse_args()
    logging.disable(logging.CRITICAL)
    start, bad, done, i = time.time(), 0, Counter(), 0
    for i in range(1, a.count + 1):
        call = fuzz if a.check == "fuzz" else partial(quietly, checks[a.check])
        wrong = call(random.Random(f"{a.check} {a.seed} {i}"), done)
        if wrong:
            bad += 1
            print("DIFFERENCE", i, wrong, flush=True)
        if time.time() - start > 60 * a.minutes:
            break
    print(dict(done))
    print(f"{a.check}: seed {a.seed}, {i} of {a.count}, {bad} differences, "
          f"{time.time() - start:.0f} s")  # fmt: skip
    sys.exit(bad > 0)
