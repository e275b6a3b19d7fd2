"""Makes fixtures/signatures/: a small model signed by model-signing, by keys and by a certificate; and by an instance of
Sigstore of our own (certificate authority, both logs, time stamp authority), keyless, in both versions of Rekor.

    pip install model-signing pyopenssl blake3
    python data/make_signature_fixtures.py

Every run makes new keys. Needs `openssl` for the time stamps.
"""

import base64
import datetime
import hashlib
import json
import os
import struct
import subprocess
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from model_signing import hashing, signing

OUT = Path(__file__).parent / "fixtures" / "signatures"
MODEL = OUT / "model"
SHARD = 1000
NOW = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
YEARS = datetime.timedelta(days=3650)
IDENTITY, ISSUER = "signer@example.org", "https://accounts.example.org"
REKOR1, REKOR2 = "rekor.example.org", "log2026.rekor.example.org"
PAYLOAD_TYPE = "application/vnd.in-toto+json"


def b64(data):
    return base64.b64encode(data).decode()


def pem_private(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def pem_public(key):
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def spki(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def der(certificate):
    return certificate.public_bytes(serialization.Encoding.DER)


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def ecdsa(key, data, digest=hashes.SHA256):
    return key.sign(data, ec.ECDSA(digest()))


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "assay's tests"),
                      x509.NameAttribute(NameOID.COMMON_NAME, text)])


def usage(**given):
    names = ("digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign "
             "crl_sign encipher_only decipher_only").split()
    return x509.KeyUsage(**{name: given.get(name, False) for name in names})


def certificate(subject, key, issuer, issuer_key, extensions, until=None, serial=None):
    builder = (x509.CertificateBuilder()
               .subject_name(named(subject) if subject else x509.Name([]))
               .issuer_name(issuer.subject if issuer else named(subject))
               .public_key(key.public_key())
               .serial_number(serial or x509.random_serial_number())
               .not_valid_before(NOW - datetime.timedelta(minutes=5))
               .not_valid_after(until or NOW + YEARS))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer_key, hashes.SHA256())


def authority(subject, key, issuer=None, issuer_key=None):
    extensions = [(x509.BasicConstraints(True, None), True), (usage(key_cert_sign=True), True)]
    return certificate(subject, key, issuer, issuer_key or key, extensions)


def pae(payload):
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def merkle(leaves, index):
    """The root, and the proof of the leaf at `index`."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest(), []
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    left, right = leaves[:half], leaves[half:]
    if index < half:
        root, proof = merkle(left, index)
        other = merkle(right, 0)[0]
        return hashlib.sha256(b"\1" + root + other).digest(), proof + [other]
    root, proof = merkle(right, index - half)
    other = merkle(left, 0)[0]
    return hashlib.sha256(b"\1" + other + root).digest(), proof + [other]


def in_log(body, origin, name, key_id, sign):
    leaves = [b"somebody's entry %d" % i for i in range(9)]
    leaves[6] = body
    root, proof = merkle(leaves, 6)
    text = f"{origin}\n{len(leaves)}\n{b64(root)}\n"
    note = f"{text}\n\u2014 {name} {b64(key_id[:4] + sign(text.encode()))}\n"
    return {"logIndex": "6", "rootHash": b64(root), "treeSize": str(len(leaves)), "hashes": [b64(h) for h in proof],
            "checkpoint": {"envelope": note}}


def fulcio_leaf(key, issuer, issuer_key, log_key):
    """A certificate for ten minutes, which the certificate log has seen."""
    wrapped = b"\x0c" + bytes([len(ISSUER)]) + ISSUER.encode()
    extensions = [(usage(digital_signature=True), True),
                  (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False),
                  (x509.SubjectAlternativeName([x509.RFC822Name(IDENTITY)]), True),
                  (x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.57264.1.8"), wrapped), False)]
    until, serial = NOW + datetime.timedelta(minutes=10), x509.random_serial_number()
    seen = certificate(None, key, issuer, issuer_key, extensions, until, serial).tbs_certificate_bytes
    stamp = int(NOW.timestamp() * 1000) + 123
    signed = (struct.pack(">BBQH", 0, 0, stamp, 1) + hashlib.sha256(spki(issuer_key)).digest() +
              len(seen).to_bytes(3, "big") + seen + b"\0\0")
    signature = ecdsa(log_key, signed)
    sct = (b"\0" + hashlib.sha256(spki(log_key)).digest() + struct.pack(">QH", stamp, 0) + b"\4\3" +
           struct.pack(">H", len(signature)) + signature)
    listed = struct.pack(">HH", len(sct) + 2, len(sct)) + sct
    assert len(listed) < 128 or len(listed) < 256
    length = bytes([len(listed)]) if len(listed) < 128 else b"\x81" + bytes([len(listed)])
    extensions.append((x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2"),
                                                  b"\x04" + length + listed), False))
    return certificate(None, key, issuer, issuer_key, extensions, until, serial)


def time_stamp(message, leaf, key, root):
    config = ("[tsa]\ndefault_tsa = one\n[one]\nserial = {0}/serial\ncrypto_device = builtin\nsigner_digest = sha256\n"
              "default_policy = 1.2.3.4.1\ndigests = sha256\naccuracy = secs:1\nordering = no\n"
              "ess_cert_id_alg = sha256\n")
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        for name, data in (("message", message), ("leaf.pem", pem(leaf)), ("root.pem", pem(root)),
                           ("key.pem", pem_private(key)), ("serial", b"01\n"),
                           ("openssl.cnf", config.format(folder).encode())):
            (at / name).write_bytes(data)
        subprocess.run(["openssl", "ts", "-query", "-data", at / "message", "-sha256", "-out", at / "query"], check=True,
                       capture_output=True)
        subprocess.run(["openssl", "ts", "-reply", "-config", at / "openssl.cnf", "-section", "one", "-queryfile",
                        at / "query", "-signer", at / "leaf.pem", "-inkey", at / "key.pem", "-out", at / "reply"],
                       check=True, capture_output=True)
        return (at / "reply").read_bytes()


def keyless():
    """Our own Sigstore, its trusted root, and a bundle of each Rekor."""
    root_key, issuer_key, key, log_key = new_key(), new_key(), new_key(), new_key()
    root = authority("certificates", root_key)
    issuer = authority("issuing", issuer_key, root, root_key)
    leaf = fulcio_leaf(key, issuer, issuer_key, log_key)
    rekor1, rekor2 = new_key(), ed25519.Ed25519PrivateKey.generate()
    raw2 = rekor2.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    id1 = hashlib.sha256(spki(rekor1)).digest()
    id2 = hashlib.sha256(REKOR2.encode() + b"\n\x01" + raw2).digest()
    tsa_root_key, tsa_key = new_key(), new_key()
    tsa_root = authority("time", tsa_root_key)
    tsa = certificate("stamping", tsa_key, tsa_root, tsa_root_key,
                      [(usage(digital_signature=True), True),
                       (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), True)])

    window = {"start": (NOW - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    log = lambda url, signer, key_id: {
        "baseUrl": url, "hashAlgorithm": "SHA2_256", "logId": {"keyId": b64(key_id)},
        "publicKey": {"rawBytes": b64(spki(signer)), "keyDetails": "PKIX", "validFor": window}}
    chain = lambda *all: {"certChain": {"certificates": [{"rawBytes": b64(der(one))} for one in all]},
                          "validFor": window}
    trusted = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
               "tlogs": [log("https://" + REKOR1, rekor1, id1), log("https://" + REKOR2, rekor2, id2)],
               "certificateAuthorities": [chain(issuer, root)],
               "ctlogs": [log("https://ct.example.org", log_key, hashlib.sha256(spki(log_key)).digest())],
               "timestampAuthorities": [chain(tsa, tsa_root)]}
    (OUT / "keyless_root.json").write_text(json.dumps(trusted, indent=1) + "\n")

    payload = base64.b64decode(json.loads((OUT / "p256.sig").read_text())["dsseEnvelope"]["payload"])
    signature = ecdsa(key, pae(payload))
    seconds = int(NOW.timestamp())
    body1 = canonical({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
        "envelopeHash": {"algorithm": "sha256", "value": "00" * 32},
        "payloadHash": {"algorithm": "sha256", "value": hashlib.sha256(payload).hexdigest()},
        "signatures": [{"signature": b64(signature), "verifier": b64(pem(leaf))}]}})
    promised = canonical({"body": b64(body1), "integratedTime": seconds, "logID": id1.hex(), "logIndex": 1006})
    entry1 = {"logIndex": "1006", "logId": {"keyId": b64(id1)}, "kindVersion": {"kind": "dsse", "version": "0.0.1"},
              "integratedTime": str(seconds),
              "inclusionPromise": {"signedEntryTimestamp": b64(ecdsa(rekor1, promised))},
              "inclusionProof": in_log(body1, REKOR1 + " - 1234", REKOR1, id1, lambda text: ecdsa(rekor1, text)),
              "canonicalizedBody": b64(body1)}
    body2 = canonical({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": {
        "data": {"algorithm": "SHA2_256", "digest": b64(hashlib.sha256(pae(payload)).digest())},
        "signature": {"content": b64(signature), "verifier": {
            "keyDetails": "PKIX_ECDSA_P256_SHA_256", "x509Certificate": {"rawBytes": b64(der(leaf))}}}}}})
    entry2 = {"logIndex": "6", "logId": {"keyId": b64(id2)},
              "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"}, "integratedTime": "0",
              "inclusionProof": in_log(body2, REKOR2, REKOR2, id2, rekor2.sign), "canonicalizedBody": b64(body2)}
    stamps = {"rfc3161Timestamps": [{"signedTimestamp": b64(time_stamp(signature, tsa, tsa_key, tsa_root))}]}
    for name, entry, times in (("rekor1", entry1, {}), ("rekor2", entry2, stamps)):
        bundle = {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
                  "verificationMaterial": {"certificate": {"rawBytes": b64(der(leaf))}, "tlogEntries": [entry],
                                           "timestampVerificationData": times},
                  "dsseEnvelope": {"payload": b64(payload), "payloadType": PAYLOAD_TYPE,
                                   "signatures": [{"sig": b64(signature)}]}}
        (OUT / f"{name}.sig").write_text(json.dumps(bundle, indent=1) + "\n")


def files(algorithm="sha256"):
    return hashing.Config().use_file_serialization(hashing_algorithm=algorithm)


def shards(algorithm):
    return hashing.Config().use_shard_serialization(hashing_algorithm=algorithm, shard_size=SHARD)


def main():
    for name, data in (("config.json", b'{"model_type": "small"}\n'), ("weights.bin", bytes(i % 251 for i in range(2500))),
                       ("sub/adapter.bin", b"adapter" * 300), ("empty.txt", b"")):
        (MODEL / name).parent.mkdir(parents=True, exist_ok=True)
        (MODEL / name).write_bytes(data)
    curves = {"p256": ec.SECP256R1(), "p384": ec.SECP384R1(), "p521": ec.SECP521R1()}
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        keys = {name: ec.generate_private_key(curve) for name, curve in curves.items()}
        for name, key in keys.items():
            (at / name).write_bytes(pem_private(key))
            (OUT / f"{name}.pub").write_bytes(pem_public(key))
            signing.Config().use_elliptic_key_signer(private_key=at / name).set_hashing_config(files()).sign(
                MODEL, OUT / f"{name}.sig")
        for name, config in (("blake2", files("blake2")), ("blake3", files("blake3")), ("shards", shards("sha256")),
                             ("blake2_shards", shards("blake2"))):
            signing.Config().use_elliptic_key_signer(private_key=at / "p256").set_hashing_config(config).sign(
                MODEL, OUT / f"{name}.sig")
        root_key, middle_key, leaf_key = new_key(), new_key(), ec.generate_private_key(ec.SECP384R1())
        root = authority("root", root_key)
        middle = authority("middle", middle_key, root, root_key)
        leaf = certificate("a signer of models", leaf_key, middle, middle_key,
                           [(x509.BasicConstraints(False, None), True), (usage(digital_signature=True), True)])
        for name, data in (("leaf", pem(leaf)), ("middle", pem(middle)), ("leaf.key", pem_private(leaf_key))):
            (at / name).write_bytes(data)
        (OUT / "ca.pem").write_bytes(pem(root))
        (OUT / "other_ca.pem").write_bytes(pem(authority("somebody else", new_key())))
        # For assay's own signing.
        (OUT / "p256.key").write_bytes(pem_private(keys["p256"]))
        (OUT / "leaf.key").write_bytes(pem_private(leaf_key))
        (OUT / "chain.pem").write_bytes(pem(leaf) + pem(middle))
        signing.Config().use_certificate_signer(
            private_key=at / "leaf.key", signing_certificate=at / "leaf", certificate_chain=[at / "middle"]
        ).set_hashing_config(files()).sign(MODEL, OUT / "certificate.sig")
    keyless()


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    main()
