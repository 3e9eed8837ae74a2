"""Environments for learning agents: the contract of Gymnasium, the same bits everywhere, what actions do, mistakes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")

import penstock.gym  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from penstock import engine, own  # noqa: E402
from penstock.bench import gym as costs  # noqa: E402
from penstock.gym.ranges import AGENTS, Agent, Ranges, following, uniform  # noqa: E402
from penstock.mistake import MistakeError  # noqa: E402
from penstock.scenario import Scenario, tree  # noqa: E402

ROOT = Path(__file__).parents[1]
# One path, so that results can be told in advance: 10 Mbit/s, a round trip of 40 ms, two products of buffer.
ALONE: dict[str, Any] = {
    "rate": "10Mbit/s",
    "delay": "20ms",
    "buffer": 2,
    "loss": 0,
    "cross_flows": 0,
    "cross_cc": "newreno",
    "aqm": "droptail",
}
CC = penstock.gym.observed("cc")
AQM = penstock.gym.observed("aqm")


def walk(env: penstock.gym.VectorEnv, steps: int, seed: int = 3) -> tuple[Any, Any, list[dict[str, Any]]]:
    """Plays random actions, which depend on the seed alone; returns all observations, rewards and infos."""
    draw = np.random.default_rng(seed)
    observations, rewards, infos = [env.reset(seed=seed)[0]], [], []
    space = env.single_action_space
    assert isinstance(space, gymnasium.spaces.Box)
    low, high = space.low[0], space.high[0]
    for _ in range(steps):
        actions = draw.uniform(low, high, (env.num_envs, 1)).astype(np.float32) * np.float32(0.5)
        seen, reward, _, _, info = env.step(actions)
        observations.append(seen)
        rewards.append(reward)
        infos.append(info)
    return np.array(observations), np.array(rewards), infos


def digest(agent: Agent, threads: int) -> str:
    """The bytes of all that a walk over the ends of episodes returns."""
    env = penstock.gym.VectorEnv(5, agent, decisions=30, threads=threads)
    observations, rewards, _ = walk(env, 70)
    return hashlib.sha256(observations.tobytes() + rewards.tobytes()).hexdigest()


@pytest.mark.parametrize("agent", AGENTS)
def test_gymnasium_finds_nothing_wrong(agent: Agent) -> None:
    env = gymnasium.make(f"penstock/{agent}-v0", decisions=20).unwrapped
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_env(env)
    # Rates and delays have no bound.
    assert all("maximum value is infinity" in str(one.message) for one in told), [str(one.message) for one in told]
    env.close()
    env.close()


@pytest.mark.parametrize("agent", AGENTS)
def test_a_vector_environment_keeps_the_contract_of_vectors(agent: Agent) -> None:
    env = gymnasium.make_vec(f"penstock/{agent}-v0", num_envs=3, decisions=4, threads=2)
    assert env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP
    first, info = env.reset(seed=7)
    assert first in env.observation_space
    assert info["episode_seed"].tolist() == [7, 8, 9]
    actions = np.zeros(env.action_space.shape, np.float32)
    ends = []
    for _ in range(9):
        seen, rewards, terminations, truncations, info = env.step(actions)
        assert seen in env.observation_space
        assert rewards.shape == terminations.shape == truncations.shape == (3,)
        assert not terminations.any()
        ends.append((bool(truncations.all()), bool(truncations.any()), "episode_seed" in info))
    # Four decisions, then a step that begins the next episode, and so on.
    assert ends == [(False, False, False)] * 3 + [(True, True, False), (False, False, True)] + ends[:4]
    env.close()
    env.close()
    with pytest.raises(MistakeError, match="closed"):
        env.step(actions)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_seed_has_the_same_bits_on_any_number_of_threads_and_in_another_process(agent: Agent) -> None:
    here = {digest(agent, threads) for threads in (1, 2, 4)}
    code = f"import test_gym; print(test_gym.digest({agent!r}, 2))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    assert here == {done.stdout.strip()}


def test_an_episode_is_repeated_from_its_own_seed() -> None:
    env = penstock.gym.VectorEnv(2, "cc", decisions=10)
    observations, rewards, infos = walk(env, 21)
    seed = int(infos[10]["episode_seed"][1])
    assert seed == following(4)
    draw = np.random.default_rng(3)
    actions = [draw.uniform(-1, 1, (2, 1)).astype(np.float32) * np.float32(0.5) for _ in range(21)]
    alone = penstock.gym.Env("cc", decisions=10)
    first, info = alone.reset(seed=seed)
    assert info == {"episode_seed": seed}
    assert first.tobytes() == observations[11, 1].tobytes()
    for at in range(11, 21):
        seen, reward, _, over, _ = alone.step(actions[at][1])
        assert seen.tobytes() == observations[at + 1, 1].tobytes()
        assert reward == rewards[at, 1]
    assert over
    assert alone.reset()[1] == {"episode_seed": following(seed)}


def test_other_seeds_are_other_episodes() -> None:
    one = Ranges.load()
    drawn = {one.draw(seed, "cc", 10**9) for seed in range(20)}
    assert len(drawn) == 20
    assert one.draw(3, "cc", 10**9) in drawn


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_that_does_nothing_changes_nothing(agent: Agent) -> None:
    """Deciding 200 times to leave all as it is has the results of deciding that once."""
    often = penstock.gym.Env(agent, interval="20ms", decisions=200, ranges={"cross_flows": 2})
    once = penstock.gym.Env(agent, interval="4s", decisions=1, ranges={"cross_flows": 2})
    for env, decisions in ((often, 200), (once, 1)):
        env.reset(seed=5)
        for _ in range(decisions):
            _, _, _, over, _ = env.step(np.zeros(1, np.float32))
        assert over
    assert often.summary() == once.summary()


def held(packets: float) -> tuple[dict[str, Any], Any]:
    """Holds a window; returns the summary of the run and the last observation."""
    env = penstock.gym.Env("cc", ranges=ALONE, decisions=300)
    seen, _ = env.reset(seed=1)
    for _ in range(300):
        seen, _, _, _, _ = env.step(np.log2([packets / seen[CC.index("cwnd_packets")]]).astype(np.float32))
    summary = env.summary()
    assert summary is not None
    return summary, seen


def test_a_larger_window_has_more_throughput_until_the_link_is_full_and_then_more_delay() -> None:
    """The path holds 34 packets of 1448 bytes: half as many have half of the rate, of twice as many half wait."""
    half, _ = held(17)
    twice, _ = held(68)
    round_trip = half["flows"][0]["rtt_ms"]["mean"] / 1e3  # with delayed acknowledgments
    assert half["flows"][0]["goodput_bps"] == pytest.approx(17 * 1448 * 8 / round_trip, rel=0.08)
    assert half["bottlenecks"][0]["queue_delay_ms"]["p50"] < 10
    assert twice["flows"][0]["goodput_bps"] > 9.2e6
    assert twice["bottlenecks"][0]["queue_delay_ms"]["p50"] == pytest.approx(40, abs=6)


def test_an_aqm_that_drops_everything_stops_the_flow() -> None:
    env = penstock.gym.Env("aqm", ranges=ALONE, decisions=300)
    env.reset(seed=1)
    for _ in range(100):
        seen = env.step(np.zeros(1, np.float32))[0]
    assert seen[AQM.index("throughput_mbps")] > 9.5
    for _ in range(100):
        seen, reward, _, _, _ = env.step(np.ones(1, np.float32))
    assert seen[AQM.index("throughput_mbps")] == 0
    assert seen[AQM.index("probability")] == 1
    assert reward <= 0
    summary = env.summary()
    assert summary is not None
    assert summary["bottlenecks"][0]["drops_aqm"] > 0


def test_an_aqm_drops_the_square_of_its_action() -> None:
    env = penstock.gym.Env("aqm", ranges={**ALONE, "cross_flows": 20}, decisions=1500)
    env.reset(seed=1)
    seen = np.array([env.step(np.full(1, 0.3, np.float32))[0] for _ in range(1500)])
    arrived = seen[:, AQM.index("load_mbps")]
    assert np.average(seen[:, AQM.index("drop_share")], weights=arrived) == pytest.approx(0.09, abs=0.01)


def test_a_control_observes_what_the_summary_tells() -> None:
    seconds = 0.02
    env = penstock.gym.Env("cc", ranges={**ALONE, "loss": 0.01}, decisions=400)
    first, _ = env.reset(seed=2)
    assert first[CC.index("cwnd_packets")] == 10
    steps = [env.step(np.full(1, a, np.float32))[0] for a in [0.2, 0.2, 0.2, 0.2, *[0.0] * 396]]
    seen = {name: np.array(steps, np.float64)[:, at] for at, name in enumerate(CC)}
    summary = env.summary()
    assert summary is not None
    flow = summary["flows"][0]
    resent = seen["loss_share"] * seen["sent_mbps"] * seconds * 1e6 / 8 / 1448
    assert resent.sum() == pytest.approx(flow["retransmits"], abs=0.01)
    assert seen["timeouts"].sum() == flow["timeouts"]
    assert seen["min_rtt_ms"][-1] == pytest.approx(flow["rtt_ms"]["min"], abs=1e-3)
    # What was delivered and not yet acknowledged is a window, and what arrived beyond a gap.
    acked = seen["throughput_mbps"].sum() * seconds * 1e6 / 8
    window = seen["cwnd_packets"][-1] * 1448
    assert flow["delivered_bytes"] - 3 * window <= acked <= flow["delivered_bytes"]
    assert seen["rtt_ms"].max() >= flow["rtt_ms"]["p90"] >= seen["rtt_ms"][1:].min()


def test_an_aqm_observes_what_the_summary_tells() -> None:
    env = penstock.gym.Env("aqm", ranges={**ALONE, "cross_flows": 3}, decisions=400)
    env.reset(seed=2)
    steps = np.array([env.step(np.full(1, 0.1, np.float32))[0] for _ in range(400)], np.float64)
    seen = {name: steps[:, at] for at, name in enumerate(AQM)}
    summary = env.summary()
    assert summary is not None
    link = summary["bottlenecks"][0]
    assert seen["throughput_mbps"].mean() * 1e6 == pytest.approx(link["throughput_bps"], rel=1e-5)
    assert set(seen["rate_mbps"]) == {10.0}
    assert (link["drops_aqm"] > 0) == (seen["drop_share"].max() > 0)
    assert seen["load_mbps"].mean() >= seen["throughput_mbps"].mean()
    assert link["queue_delay_ms"]["p99"] <= seen["queue_delay_ms"].max() * 1.5


def test_the_reward_is_its_formula() -> None:
    """With one weight each, the reward of an AQM is what its observation tells; a control has a share of the link."""
    played = {}
    for name in ("throughput", "delay", "loss"):
        weights = {**dict.fromkeys(("throughput", "delay", "loss"), 0.0), name: 2.0}
        env = penstock.gym.Env("aqm", ranges=ALONE, decisions=50, reward=penstock.gym.Reward(**weights))
        env.reset(seed=1)
        played[name] = [env.step(np.full(1, 0.2, np.float32))[:2] for _ in range(50)]
    for seen, reward in played["throughput"]:
        assert reward == pytest.approx(2 * seen[AQM.index("throughput_mbps")] / 10, abs=1e-5)
    for seen, reward in played["delay"]:
        assert reward == pytest.approx(-2 * seen[AQM.index("queue_delay_ms")] / 40, rel=1e-5)
    for seen, reward in played["loss"]:
        assert reward == pytest.approx(-2 * seen[AQM.index("drop_share")], rel=1e-5)
    assert sum(reward for _, reward in played["loss"]) < 0


def test_a_share_beyond_the_fair_one_earns_nothing() -> None:
    alone = penstock.gym.Reward(1, 0, 0)
    env = penstock.gym.Env("cc", ranges={**ALONE, "cross_flows": 1}, decisions=300, reward=alone)
    env.reset(seed=1)
    rewards = [env.step(np.full(1, 0.3, np.float32))[:2] for _ in range(300)]
    assert max(reward for _, reward in rewards) == 1
    assert max(seen[CC.index("throughput_mbps")] for seen, _ in rewards) > 7


def test_a_scenario_is_changed_by_ranges(tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(
        '[topology]\nkind = "dumbbell"\nrate = "5Mbit/s"\ndelay = "10ms"\nlimit = "50p"\n'
        '[tcp]\ncc = "newreno"\n[[flows]]\nkind = "bulk"\n[[flows]]\nkind = "cbr"\nrate = "1Mbit/s"\n'
    )
    changed = tree(Ranges.load({"rate": "8Mbit/s"}, base).draw(1, "cc", 10**9))
    assert changed["topology"] == {"kind": "dumbbell", "rate": "8000000bit/s", "delay": "10ms", "limit": "50p"}
    assert [flow.get("cc") for flow in changed["flows"]] == ["agent", None]
    env = penstock.gym.Env("aqm", scenario=base, decisions=50)
    env.reset(seed=1)
    for _ in range(50):
        env.step(np.zeros(1, np.float32))
    summary = env.summary()
    assert summary is not None
    assert [flow["cc"] for flow in summary["flows"]] == ["newreno", ""]


def test_draws_stay_in_their_ranges() -> None:
    ranges = Ranges.load({"rate": ["1Mbit/s", "100Mbit/s"], "cross_flows": [1, 3], "buffer": 1})
    drawn = [tree(ranges.draw(seed, "cc", 10**9)) for seed in range(300)]
    rates = [int(one["topology"]["rate"].removesuffix("bit/s")) for one in drawn]
    assert min(rates) >= 1e6
    assert max(rates) <= 1e8
    assert 0.4 < sum(rate < 1e7 for rate in rates) / 300 < 0.6
    assert {one["flows"][1]["count"] for one in drawn} == {1, 2, 3}
    for rate, one in zip(rates, drawn, strict=True):
        delay = int(one["topology"]["delay"].removesuffix("ns")) / 1e9
        assert int(one["topology"]["limit"].removesuffix("B")) == max(7500, round(rate * 2 * delay / 8))
    assert uniform(1, "rate") != uniform(1, "delay")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"rates": "1Mbit/s"}, "no key 'rates'; did you mean"),
        ({"rate": "5ms"}, 'write a rate such as "10Mbit/s"'),
        ({"rate": ["1Mbit/s", "2Mbit/s", "3Mbit/s"]}, "or a list of the lowest and the largest"),
        ({"delay": ["9ms", "5ms"]}, "the first number is the lowest"),
        ({"loss": 0.9}, "0 to 0.5 are allowed"),
        ({"cross_flows": [0, 1.5]}, "write whole numbers"),
        ({"buffer": True}, "write a number"),
        ({"aqm": []}, "write a name"),
        ({"aqm": "coddel"}, "no 'coddel'; did you mean"),
        ({"cross_cc": ["cubic", "codel"]}, "cross_cc: no 'codel'"),
    ],
)
def test_a_mistake_in_ranges_is_told(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MistakeError, match=sentence):
        penstock.gym.VectorEnv(1, "cc", ranges=given)


def test_mistakes_in_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("rate = [")
    for name, sentence in (("bad.toml", "not a file of ranges"), ("none.toml", "cannot be read")):
        with pytest.raises(MistakeError, match=rf"{name}: {sentence}"):
            penstock.gym.Env("cc", ranges=tmp_path / name)
    with pytest.raises(MistakeError, match=r'needs \[topology\] with kind = "dumbbell"'):
        penstock.gym.Env("cc", scenario={"topology": {"kind": "parking-lot"}})
    base: dict[str, Any] = {"topology": {"kind": "dumbbell", "rate": "1Mbit/s"}, "flows": [{"kind": "bulk"}]}
    with pytest.raises(MistakeError, match="ranges: buffer needs delay"):
        penstock.gym.Env("cc", scenario=base, ranges={"buffer": 1})
    env = penstock.gym.VectorEnv(3, "cc", scenario=base, threads=2)
    with pytest.raises(engine.ScenarioError, match=r"episode\.toml"):
        env.reset(seed=1)


@pytest.mark.parametrize("agent", AGENTS)
def test_bad_actions_are_told(agent: Agent) -> None:
    env = penstock.gym.VectorEnv(2, agent, decisions=5)
    with pytest.raises(MistakeError, match="reset"):
        env.step(np.zeros((2, 1), np.float32))
    env.reset(seed=1)
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(ValueError, match=r"action 1 is .*: it must be a finite number"):
            env.step(np.array([[0.0], [bad]]))
    for shape in ((2,), (3, 1), (2, 2)):
        with pytest.raises(MistakeError, match=r"it must be \(2, 1\)"):
            env.step(np.zeros(shape, np.float32))
    with pytest.raises(MistakeError, match="no array of numbers"):
        env.step([["a"], ["b"]])  # type: ignore[arg-type]
    # What is finite and out of bounds is what is next to it; the episode goes on as if nothing had been wrong.
    other = penstock.gym.VectorEnv(2, agent, decisions=5)
    other.reset(seed=1)
    far, near = env.step(np.full((2, 1), 1e9)), other.step(np.ones((2, 1), np.float32))
    assert far[0].tobytes() == near[0].tobytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"agent": "tcp"}, "write 'cc' or 'aqm'"),
        ({"interval": "20"}, "write a time"),
        ({"interval": "1us"}, "write a time"),
        ({"decisions": 0}, "write a whole number"),
        ({"decisions": 2.5}, "write a whole number"),
        ({"interval": "10s", "decisions": 8641}, "from 1 to 8640"),
        ({"pacing": 0}, "pacing is 0"),
        ({"reward": 1}, "reward is 1"),
        ({"threads": 0}, "threads is 0"),
        ({"num_envs": 0}, "num_envs is 0"),
    ],
)
def test_bad_arguments_are_told(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MistakeError, match=sentence):
        penstock.gym.VectorEnv(**arguments)


def test_bad_seeds_and_weights_are_told() -> None:
    env = penstock.gym.VectorEnv(2, "cc")
    bad: list[Any] = [-1, 1.5, [1], [1, 2**63]]
    for seeds in bad:
        with pytest.raises(MistakeError):
            env.reset(seed=seeds)
    for weight in (-1.0, float("nan")):
        with pytest.raises(MistakeError, match="the weight delay"):
            penstock.gym.Reward(delay=weight)


def test_without_gymnasium_a_sentence_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['gymnasium'] = None\nimport penstock.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "penstock.gym needs the package gymnasium: `pip install 'penstock[gym]'`" in done.stderr


def test_memory_does_not_grow_with_episodes() -> None:
    code = (
        "import numpy as np, penstock.gym, resource\n"
        "env = penstock.gym.VectorEnv(8, 'cc', decisions=20, threads=2)\n"
        "still = np.zeros((8, 1), np.float32)\n"
        "env.reset(seed=1)\n"
        "def play(n):\n"
        "    for _ in range(n): env.step(still)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "first = play(1000)\n"
        "print(play(4000) - first)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8192, f"{done.stdout} kB more after 1,500 episodes"


def test_a_policy_is_the_same_control_in_the_lab() -> None:
    """The control of examples/gym, and its policy as an agent, have the same throughput on a path, within a tenth."""
    learned = own.load(ROOT / "examples" / "gym" / "learned.py")
    train = own.load(ROOT / "examples" / "gym" / "train.py")
    env = penstock.gym.VectorEnv(1, "cc", ranges=ALONE, interval=train.INTERVAL, decisions=500)
    seen, _ = env.reset(seed=1)
    for _ in range(500):
        seen = env.step(np.tanh((train.features(seen) * np.array(learned.POLICY)).sum(axis=-1, keepdims=True)))[0]
    agent = env.summary(0)
    assert agent is not None
    drawn = Ranges.load(ALONE).draw(1, "cc", 20 * 10**9).replace('"agent"', '"learned.py:Learned"')
    control = engine.simulate(Scenario(drawn, str(ROOT / "examples" / "gym" / "one.toml"))).summary
    ours, theirs = (one["flows"][0]["goodput_bps"] for one in (control, agent))
    assert ours == pytest.approx(theirs, rel=0.1)
    assert float(train.INTERVAL.removesuffix("ms")) / 1e3 == learned.INTERVAL_S


def test_the_example_of_training_trains(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    train = own.load(ROOT / "examples" / "gym" / "train.py")
    for name, few in (("POLICIES", 3), ("BEST", 2), ("EPISODES", 2), ("GENERATIONS", 2)):
        monkeypatch.setattr(train, name, few)
    train.main()
    assert "POLICY = (" in capsys.readouterr().out


def test_the_page_begins_with_a_program_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "gym.md").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], found)
    assert found["observations"].shape == (64, 8)
    assert found["observations"][:, 0].mean() > 1
    for agent in AGENTS:
        assert all(f"`{name}`" in page for name in penstock.gym.observed(agent))


def test_decisions_are_measured_beside_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "PLACES", 2)
    monkeypatch.setattr(costs, "DECISIONS", 500)
    found = costs.measure(quick=True, repeat=1, say=lambda _: None)
    assert {cost.agent for cost in found.costs} == set(AGENTS)
    assert len(costs.cells(found)[0]) == len(costs.COLUMNS)
    assert found.to_json()["gym"][0]["decisions_per_s"] > 0
    assert costs.NOT_REACHED.to_json()["gym"] is None
