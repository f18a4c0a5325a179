"""The API server's client and what controllers are made of.

From the wire up: `client` (calls), `watch` (a stream of events), `reflector` (list and watch for ever), `store` and
`informer` (what is known now, and what changed), `queue` and `expectations` (whose turn it is), `leader`
(who may work), `ownership` (what is ours), `events` (what users are told).
"""
