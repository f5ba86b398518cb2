"""The long checks of scopes, each from its seed:

    python tests/soak_scopes.py CHECK [--count N] [--seed S] [--minutes M] [--cap K] [--most V]

brute    pomps == pomps_brute on random problems with up to 5 observed variables,
         half with actions among the contexts
pomis    the search without contexts, pomps(contexts=[]) and pomis agree on random graphs
families scopes by families, expanded, are those that are found one by one, and with three
         actions at most also those of pomps_brute; random fans, in which orders matter
orders   graphs with 6 to 10 variables and up to 5 actions: the answer is that of a search that
         tries all orders of all actions, without any argument why some need not be tried
rename   relabelling the nodes relabels the answer
oracle   exact values in random SCMs: no scope is ever better than all returned ones
         (COUNT graphs, 100 SCMs each)
witness  hill climbing finds for each returned scope an SCM in which it is strictly better than
         every other scope without anything redundant, but for the same scope with more contexts,
         which ties in every SCM
explain  for every scope of random problems, the scope that `explain` calls better is never worse
         in random SCMs

Exit code 1 if anything differs, or if fewer than 95 % of the returned scopes have a witness.
"""

import argparse, random, sys, time
from itertools import permutations
from cocabo.graph import Graph
from cocabo.scopes import Scope, bits, ordered, pomis, pomps_brute, task
from cocabo.search import Search, pomps


cap_default, most_default = [20_000], [5]


def random_problem(rng, most=5, cap=None):
    "A random problem whose brute force list has at most about `cap` scopes"
    want, cap = rng.random() < 0.5, cap or cap_default[0]
    while True:
        n, p, q = rng.randint(2, most), rng.choice([0.3, 0.5, 0.7]), rng.choice([0, 0.15, 0.3, 0.5])
        V = rng.sample([f"V{i}" for i in range(n)], n)
        pairs = [(V[i], V[j]) for i in range(n) for j in range(i + 1, n)]
        h = Graph(
            nodes=V,
            directed=[e for e in pairs if rng.random() < p],
            bidirected=[e for e in pairs if rng.random() < q],
        )
        y = V[-1] if rng.random() < 0.6 else rng.choice(V)
        rest = sorted(h.nodes - {y})
        acts = rng.sample(rest, rng.randint(1, len(rest)))
        ctx = [v for v in rest if want or v not in acts]
        if rng.random() < 0.5:
            ctx = [v for v in ctx if rng.random() < 0.6]
        if (
            want != bool(set(ctx) & set(acts))
            or (1 + 2 ** (n - 2 + len(h.bidirected))) ** len(acts) > cap
        ):
            continue
        return task(h, y, acts, ctx)


def expanded(t, many):
    "The scopes of all families, where more orders than `many` make a ladder"
    families = Search(t, many=many).families(progress=False)
    found = [s for f in families for s in f]
    assert len(found) == sum(f.count for f in families) and len(set(found)) == len(found)
    return ordered(found)


def brute(rng):
    t = random_problem(rng, most_default[0])
    want = pomps_brute(*t)
    return pomps(*t) == want == expanded(t, 1), t, bool(set(t.actions) & set(t.contexts))


def without_contexts(rng):
    t = random_problem(rng, 7, 10**40)._replace(contexts=())
    want = set(pomis(t.graph, t.target, t.actions))
    search = Search(t)
    return (
        {frozenset(s) for s in pomps(*t)} == want
        and {frozenset(search.bits.scope(k)) for k in search.run()} == want,
        t,
        False,
    )


def fan(rng):
    "Two to four actions that act through variables of their own, and random further edges"
    k = rng.randint(2, 4)
    tied = {(f"C{i}", "Y") for i in range(k) if rng.random() < 0.25}
    arrows = set()
    for i in range(k):
        arrows.add((f"X{i}", f"C{i}"))
        if (f"C{i}", "Y") not in tied or rng.random() < 0.5:
            arrows.add((f"C{i}", "Y"))
        more = [(f"X{i}", "Y", 0.3), ("S", f"C{i}", 0.3), ("S", f"X{i}", 0.2)]
        for j in range(i):
            more += [(f"C{j}", f"C{i}", 0.1), (f"X{j}", f"C{i}", 0.1), (f"X{j}", f"X{i}", 0.05)]
        arrows |= {(a, b) for a, b, p in more if rng.random() < p}
    acts = [f"X{i}" for i in range(k)]
    tied |= {(x, rng.choice(["S", "Y", "C0"])) for x in acts if rng.random() < 0.15}
    g = Graph(nodes=["S", "Y"], directed=arrows, bidirected=tied)
    return task(g, "Y", acts, [v for v in sorted(g.nodes - {"Y"}) if rng.random() < 0.9])


def families(rng):
    t = fan(rng)
    one_by_one = Search(t, many=10**9)
    want = ordered(one_by_one.bits.scope(k) for k in one_by_one.run(progress=False))
    fine = expanded(t, 1) == want
    small = (1 + 2 ** (len(t.graph.nodes) - 2 + len(t.graph.bidirected))) ** len(t.actions)
    if small <= cap_default[0]:
        fine = fine and pomps_brute(*t) == want
    return fine, t, bool(set(t.actions) & set(t.contexts))


class AllOrders(Search):
    "A search in which every action is tried at every place"

    def best(self, acted, needs=None):
        acted &= self.free | self.hard
        orders, needs, out = self.orders(acted), needs or {}, set()
        for order in permutations(bits(acted)):
            place = {x: i for i, x in enumerate(order)}
            if any(place.get(a, -1) > place[x] for x in order for a in bits(needs.get(x, 0))):
                continue
            held, left = dict.fromkeys(orders.down, 0), acted
            for x in reversed(order):
                z = orders.seen & ~orders.below(left) & ~orders.down[x] | left & ~(1 << x)
                if self.core.reaches(x, held):
                    held[x] = z & self.core.visible(held, z, 1 << x)
                left &= ~(1 << x)
            out.add(tuple(self.core.determined(held).items()))
        return out


def all_orders(rng):
    n, p, q = rng.randint(6, 10), rng.choice([0.2, 0.3, 0.45]), rng.choice([0, 0.08, 0.2])
    names = [f"V{i}" for i in range(n)]
    pairs = [(names[i], names[j]) for i in range(n) for j in range(i + 1, n)]
    h = Graph(
        nodes=names,
        directed=[e for e in pairs if rng.random() < p],
        bidirected=[e for e in pairs if rng.random() < q],
    )
    y = names[-1] if rng.random() < 0.6 else rng.choice(names[n // 2 :])
    rest = [v for v in names if v != y]
    acts = rng.sample(rest, rng.randint(3, 5))
    ctx = [v for v in rest if rng.random() < 0.8] or rest
    t = task(h, y, acts, ctx)
    search = AllOrders(t)
    want = ordered(search.bits.scope(k) for k in search.run(progress=False))
    return pomps(*t) == want == expanded(t, 1), t, bool(set(acts) & set(ctx))


def rename(rng):
    t = random_problem(rng, 6, 10**40)
    new = dict(
        zip(sorted(t.graph.nodes), rng.sample([f"W{i}" for i in range(9)], len(t.graph.nodes)))
    )
    h = Graph(
        nodes=list(new.values()),
        directed=[(new[a], new[b]) for a, b in t.graph.directed],
        bidirected=[(new[a], new[b]) for a, b in t.graph.bidirected],
    )
    want = ordered(Scope({new[x]: [new[c] for c in cs] for x, cs in s.items()}) for s in pomps(*t))
    return (
        pomps(h, new[t.target], [new[x] for x in t.actions], [new[c] for c in t.contexts]) == want,
        t,
        bool(set(t.actions) & set(t.contexts)),
    )


def oracle(rng):
    from cocabo.oracle import never_better

    t = random_problem(rng, 5, 3_000)
    return (
        never_better(t, pomps(*t), rng.randrange(2**31), 100) is None,
        t,
        bool(set(t.actions) & set(t.contexts)),
    )


found = [0, 0]  # witnesses, returned scopes


def witness(rng):
    from cocabo.bitgraph import BitTask
    from cocabo.oracle import find_witness
    from cocabo.scopes import mixed_policy_scopes

    t = random_problem(rng, 5, 3_000)
    b = BitTask(t)
    rivals = {
        b.scope(b.reduced(dict(b.pairs(s)))) for s in mixed_policy_scopes(*t)
    }  # all scopes without anything redundant
    for s in pomps(*t):

        def ties(r):
            return r.keys() == s.keys() and all(
                s[x] <= r[x] for x in s
            )  # s with more contexts: the same class, since s is undominated

        found[1] += 1
        found[0] += (
            find_witness(t, s, ordered(r for r in rivals if not ties(r)), rng.randrange(2**31))
            is not None
        )
    return True, t, bool(set(t.actions) & set(t.contexts))


def explained(rng):
    from cocabo.oracle import never_better
    from cocabo.scopes import mixed_policy_scopes
    from cocabo.verdicts import explain

    t, fine = random_problem(rng, 5, 3_000), True
    kept = pomps(*t)
    every = list(mixed_policy_scopes(*t))
    for s in rng.sample(every, min(len(every), 12)):
        v = explain(t.graph, s, t.target, t.actions, t.contexts)
        fine &= v.kept == (s in kept) and (v.kept or v.better in kept)
        fine &= v.reason == "kept" if v.kept else v.reason == v.steps[0].reason
        for step in v.steps:
            fine &= never_better(t, [step.scope], rng.randrange(2**31), 8, [s]) is None
    return fine, t, False


checks = dict(
    brute=brute,
    pomis=without_contexts,
    families=families,
    orders=all_orders,
    rename=rename,
    oracle=oracle,
    witness=witness,
    explain=explained,
)

if __name__ == "__main__":
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("check", choices=checks)
    p.add_argument("--count", type=int, default=3000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--minutes", type=float, default=15)
    p.add_argument(
        "--most",
        type=int,
        default=5,
        help="largest number of observed variables of the brute force check",
    )
    p.add_argument("--cap", type=int, default=20_000, help="largest brute force list, in scopes")
    a = p.parse_args()
    cap_default[0], most_default[0] = a.cap, a.most
    start, bad, overlap, i = time.time(), 0, 0, 0
    for i in range(1, a.count + 1):
        fine, t, o = checks[a.check](random.Random(f"{a.check} {a.seed} {i}"))
        overlap += o
        if not fine:
            bad += 1
            print("DIFFERENCE", i, repr(str(t.graph)), t[1:], flush=True)
        if i % max(1, a.count // 20) == 0:
            print(f"{i} of {a.count}, {bad} differences, {time.time() - start:.0f} s", flush=True)
        if time.time() - start > 60 * a.minutes:
            break
    print(
        f"{a.check}: seed {a.seed}, {i} problems ({overlap} with actions among the contexts), "
        f"{bad} differences, {time.time() - start:.0f} s",
        end="",
    )
    print(f", witnesses for {found[0]} of {found[1]} returned scopes" if found[1] else "")
    sys.exit(bad > 0 or found[0] < 0.95 * found[1])
