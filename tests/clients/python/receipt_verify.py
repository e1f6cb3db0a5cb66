"""Verifies a receipt of Holdfast: python3 receipt_verify.py RECEIPT KEYS. Only the standard library."""

import hashlib
import json
import sys

# Ed25519, RFC 8032: verification is public, so it need not be fast or of constant time.
P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, p):
    q = (0, 1, 1, 0)
    while n:
        q, p, n = add(q, p) if n & 1 else q, add(p, p), n >> 1
    return q


def point(raw):
    y, sign = int.from_bytes(raw, "little") & (1 << 255) - 1, raw[31] >> 7
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(xx, (P + 3) // 8, P)
    x = x if x * x % P == xx else x * pow(2, (P - 1) // 4, P) % P
    assert y < P and x * x % P == xx and (x or not sign), "not a point"
    x = x if x & 1 == sign else P - x
    return x, y, 1, x * y % P


def is_signed(key, message, signature):
    base, s = point((4 * pow(5, -1, P) % P).to_bytes(32, "little")), int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % L
    p, q = times(s, base), add(point(signature[:32]), times(h, point(key)))
    return s < L and all((p[i] * q[2] - q[i] * p[2]) % P == 0 for i in (0, 1))


signed, keys = (json.load(open(name, "rb")) for name in sys.argv[1:])
receipt, charge, key_id = signed["receipt"], signed["receipt"]["charge"], signed["signature"]["key_id"]
keys = [bytes.fromhex(key["public_key"]) for key in keys["keys"]]
key = next(key for key in keys if hashlib.sha256(key).hexdigest()[:16] == key_id)
# RFC 8785 of a document of texts, lists, objects and null.
canonical = json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
signature = bytes.fromhex(signed["signature"]["value"])
assert is_signed(key, b"holdfast receipt v1\n" + canonical, signature), "the signature does not fit"
millionths = sum(
    int(line["units"]) * int(line["price_micros"]) * 10**6 // int(line["per_units"]) for line in charge["price_lines"]
)
charged = int(charge["charge_micros"]) + int(charge["shortfall_micros"])
assert -(-millionths // 10**6) == charged, "the lines do not make the charge"
print(json.dumps({"charge_micros": int(charge["charge_micros"]), "refunded_micros": int(receipt["refunded_micros"])}))
