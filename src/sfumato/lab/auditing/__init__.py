"""Measure the privacy loss of any mechanism or query: sampled audits, replays with recorded noise, broken controls."""
