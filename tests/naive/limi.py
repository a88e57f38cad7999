"""LIMI's probing as the paper writes it: latent by latent, candidate by candidate."""

from __future__ import annotations

from tests.naive.check import key, verdict


def probe(score, schema, decode, normal, offset, latents, step, cap=None):
    """(keys found in order, keys seen)."""
    seen, found = set(), []
    for z in latents:
        distance = float(z @ normal) + offset
        z0 = z - distance * normal
        for candidate in (z0, z0 + step * normal, z0 - step * normal):
            if cap is not None and len(seen) >= cap:
                break
            row = decode(candidate[None])[0]
            k = key(schema, row)
            if k in seen:
                continue
            seen.add(k)
            if verdict(score, schema, row, "first")[0]:
                found.append(k)
                break
    return found, seen
