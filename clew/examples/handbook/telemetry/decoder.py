"""Decode TB1 frames. The layout stands in telemetry/format.md; the meaning of the flags in telemetry/alarms.md.

Kept short on purpose: customers copy it. See https://handbook.halyardpine.example/telemetry/format/
"""

import hashlib
import hmac
import struct

SYNC = 0x7E5A
NOT_MEASURED = 65535
_FRAME = struct.Struct("<HBHIIiiHHHhhHBHH8sH")

FLAGS = {0: "adrift", 1: "roll period", 2: "seal noise", 3: "stored", 4: "lid open"}


def crc16(data: bytes) -> int:
    """CRC-16/CCITT-FALSE: polynomial 0x1021, start 0xFFFF, not reflected."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
            crc &= 0xFFFF
    return crc


def decode_frame(frame: bytes, key: bytes) -> dict[str, object]:
    """One frame as a record in SI units.

    Raises ValueError for a frame of the wrong length, sync word, checksum or signature. A wave height of
    65535 means "not measured" and becomes None: a Sandpiper has no motion unit.
    """
    if len(frame) != _FRAME.size:
        raise ValueError(f"a frame has {_FRAME.size} bytes, not {len(frame)}")
    (
        sync,
        version,
        station,
        sequence,
        time,
        latitude,
        longitude,
        wind,
        direction,
        pressure,
        air,
        sea,
        wave,
        charge,
        flags,
        checksum,
        signature,
        _,
    ) = _FRAME.unpack(frame)
    if sync != SYNC or version != 1:
        raise ValueError("not a TB1 frame")
    if crc16(frame[:36]) != checksum:
        raise ValueError("checksum")
    if not hmac.compare_digest(hmac.new(key, frame[:38], hashlib.sha256).digest()[:8], signature):
        raise ValueError("signature")
    return {
        "station": station,
        "sequence": sequence,
        "time": time + 946684800,
        "latitude": latitude * 1e-7,
        "longitude": longitude * 1e-7,
        "wind_speed": wind / 100,
        "wind_direction": direction / 100,
        "pressure": 800 + pressure / 10,
        "air_temperature": air / 100,
        "sea_temperature": sea / 100,
        "wave_height": None if wave == NOT_MEASURED else wave / 1000,
        "charge": charge,
        "flags": [name for bit, name in FLAGS.items() if flags >> bit & 1],
    }
