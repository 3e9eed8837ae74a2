"""Trains the policy of `learned.py` in `penstock.gym` with the cross-entropy method: numpy alone, about a minute.

    python examples/gym/train.py

Each generation draws policies from a normal distribution, gives all of them the same episodes, and fits the
distribution to the best. The last line is that of `learned.py`.
"""

from pathlib import Path

import numpy as np
import penstock.gym

HERE = Path(__file__).parent
INTERVAL, DECISIONS = "40ms", 250
POLICIES, BEST, EPISODES, GENERATIONS = 24, 6, 12, 20
SEEN = penstock.gym.observed("cc")


def features(seen):
    """What the policy looks at, as `learned.py` computes it: columns of numbers about 1."""
    at = {name: seen[..., SEEN.index(name)] for name in SEEN}
    waited = at["rtt_ms"] / np.maximum(at["min_rtt_ms"], 1e-3) - 1
    return np.stack(
        [np.ones_like(waited), np.clip(waited, 0, 3), at["loss_share"] > 0, np.log2(at["cwnd_packets"]) / 5], axis=-1
    )


def play(env, weights, seeds):
    """Plays an episode with each policy and each seed; returns the mean reward of a decision for each policy."""
    seen, _ = env.reset(seed=seeds * len(weights))
    each = np.repeat(weights, len(seeds), axis=0)
    total = np.zeros(env.num_envs)
    for _ in range(DECISIONS):
        actions = np.tanh((features(seen) * each).sum(axis=-1, keepdims=True))
        seen, rewards, _, _, _ = env.step(actions)
        total += rewards
    return total.reshape(len(weights), len(seeds)).mean(axis=1) / DECISIONS


def main():
    draw = np.random.default_rng(1)
    env = penstock.gym.VectorEnv(
        POLICIES * EPISODES, "cc", ranges=HERE / "ranges.toml", interval=INTERVAL, decisions=DECISIONS
    )
    mean, deviation = np.zeros(4), np.full(4, 0.5)
    for generation in range(GENERATIONS):
        policies = mean + deviation * draw.standard_normal((POLICIES, 4))
        policies[0] = mean
        rewards = play(env, policies, [1000 * generation + episode for episode in range(EPISODES)])
        best = policies[np.argsort(rewards)[-BEST:]]
        print(f"{generation:2}  mean policy {rewards[0]:6.3f}  best {rewards.max():6.3f}  {np.round(mean, 3)}")
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.02
    policies = np.array([np.zeros(4), mean] + [mean] * (POLICIES - 2))
    rewards = play(env, policies, [10**6 + episode for episode in range(EPISODES)])
    print(f"on episodes that it has not seen: {rewards[1]:.3f}; a window that stays as it is: {rewards[0]:.3f}")
    print(f"POLICY = ({', '.join(f'{weight:.3f}' for weight in mean)})")


if __name__ == "__main__":
    main()
