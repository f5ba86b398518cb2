"""Interrupts at random moments inside ask, act and tell: nothing is half learnt, nothing counts
twice, and the next suggestion is that of a twin that was never disturbed.

    python tests/soak_interrupts.py --count 1000 --seed 0
"""

import argparse
import random
import signal
import sys
import time

import torch

import cocabo as cb

torch.set_num_threads(1)


class Stop(BaseException):
    "The interrupt"


def ring(*_):
    raise Stop


def at_a_line(f, rng):
    "Call `f`, and raise at a random line of cocabo; whether it was interrupted, and the result"
    left = rng.choice([3, 10, 30, 100, 300, 1000, 3000]) * rng.random()

    def trace(frame, event, arg):
        nonlocal left
        if "cocabo" not in frame.f_code.co_filename:
            return None
        left -= event == "line"
        if left < 0:
            sys.settrace(None)
            raise Stop
        return trace

    sys.settrace(trace)
    try:
        return False, f()
    except Stop:
        return True, None
    finally:
        sys.settrace(None)


def by_timer(f, rng):
    "Call `f`, and let an alarm ring at a random moment; whether it rang, and the result"
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, rng.choice([1e-3, 1e-2, 5e-2])))
        result = f()
        signal.setitimer(signal.ITIMER_REAL, 0)
        return False, result
    except Stop:
        return True, None


def persist(f, done, rng, count):
    """Call `f` until it gets through, disturbing it at most three times; `done` says after an
    interrupt whether the call had arrived nevertheless"""
    for _ in range(3):
        # half of the interrupts by either way: a timer often rings too late
        how = min(at_a_line, by_timer, key=lambda f: count[f.__name__])
        stopped, result = how(f, rng)
        if not stopped:
            return result
        count[how.__name__] += 1
        if done():
            count["arrived"] += 1
            return None
    return f()


def step(opt, env, t, luck, disturb):
    "One experiment; what was done"
    number = opt.asked
    if disturb:
        persist(opt.ask, lambda: opt.asked > number, *disturb)
    else:
        opt.ask()
    assert opt.asked == number + 1 and list(opt.open) == [number], "ask is half done"
    trial = opt.open[number]
    e = env.episode(luck, t).choose(trial.scope)
    done = set()
    while not trial.ready:
        seen = e.observe(trial.needs) if trial.needs else {}
        had = len(trial.actions)
        if disturb:
            persist(lambda: trial.act(seen), lambda: len(trial.actions) > had, *disturb)
        else:
            trial.act(seen)
        new = {x: v for x, v in trial.actions.items() if x not in done}
        e.set(new)
        done.update(new)
    y = e.target()
    if disturb:
        told = opt.told
        persist(lambda: opt.tell(number, y), lambda: opt.told > told, *disturb)
    opt.tell(number, y)  # and once more, to be sure
    assert opt.told == number + 1 and not opt.open, "tell is half done, or counted twice"
    return str(trial.scope), trial.contexts, trial.actions, y, trial.choice.ucb


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--steps", type=int, default=40, help="trials of an optimiser")
    args = p.parse_args()
    rng = random.Random(args.seed)
    count = dict(at_a_line=0, by_timer=0, arrived=0)
    signal.signal(signal.SIGALRM, ring)
    began, optimisers, steps = time.time(), 0, 0
    while count["at_a_line"] + count["by_timer"] < args.count:
        env = cb.environments[rng.choice(["fig1", "mixed", "two_stage", "toy_cbo"])]
        calm, shaken = (cb.CoCaBO(env.problem, seed=optimisers) for _ in range(2))
        optimisers += 1
        for t in range(args.steps):
            expected = step(calm, env, t, optimisers, None)
            found = step(shaken, env, t, optimisers, (rng, count))
            assert found == expected, f"{env.name}, trial {t}: {found} and not {expected}"
            steps += 1
            if count["at_a_line"] + count["by_timer"] >= args.count:
                break
    print(
        f"{count['at_a_line']} interrupts at a line, {count['by_timer']} by a timer, of which "
        f"{count['arrived']} came after the call had arrived; {steps} trials of {optimisers} "
        f"optimisers: 0 half done, 0 counted twice, all suggestions as undisturbed, "
        f"{time.time() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
