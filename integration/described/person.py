"""An issuer of one person: an RSA key of this run, its key set, and tokens by it. No library for what is a power and a hash."""

import base64
import hashlib
import json
import secrets
import time

ISSUER = "https://id.example/"
AUDIENCE = "leasehold"
EXPONENT = 65537
# What stands before a SHA-256 digest in a signature (RFC 8017, section 9.2, note 1).
DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


def b64(octets):
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def is_prime(number):
    """Whether it is, by Miller and Rabin: wrong less than once in 2^80."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(40):
        power = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = pow(power, 2, number)
            if power == number - 1:
                break
        else:
            return False
    return True


def prime():
    while True:
        # The two highest bits set, so that the product of two has all its bits.
        number = secrets.randbits(1024) | 3 << 1022 | 1
        if all(number % small for small in (3, 5, 7, 11, 13, 17)) and number % EXPONENT != 1 and is_prime(number):
            return number


class Issuer:
    def __init__(self):
        one, other = prime(), prime()
        self.modulus = one * other
        self.private = pow(EXPONENT, -1, (one - 1) * (other - 1))

    def key_set(self):
        modulus = b64(self.modulus.to_bytes(256, "big"))
        return {"keys": [{"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": modulus, "e": b64(b"\1\0\1")}]}

    def token(self, subject):
        header = {"alg": "RS256", "kid": "one", "typ": "JWT"}
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "exp": int(time.time()) + 3600}
        signed = ".".join(b64(json.dumps(part).encode()) for part in (header, claims))
        digest = DIGEST_INFO + hashlib.sha256(signed.encode()).digest()
        padded = b"\0\1" + b"\xff" * (256 - 3 - len(digest)) + b"\0" + digest
        signature = pow(int.from_bytes(padded, "big"), self.private, self.modulus)
        return f"{signed}.{b64(signature.to_bytes(256, 'big'))}"
