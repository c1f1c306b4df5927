"""Decodes MessagePack, the format in which AMD's code objects describe their kernels."""


def decode(data):
    value, _ = _value(data, 0)
    return value


def _number(data, at, size, signed=False):
    return int.from_bytes(data[at:at + size], "big", signed=signed), at + size


def _text(data, at, size):
    return data[at:at + size].decode(), at + size


def _list(data, at, count):
    items = []
    for _ in range(count):
        item, at = _value(data, at)
        items.append(item)
    return items, at


def _map(data, at, count):
    items = {}
    for _ in range(count):
        key, at = _value(data, at)
        items[key], at = _value(data, at)
    return items, at


SIMPLE = {0xC0: None, 0xC2: False, 0xC3: True}
# By the first byte: the size in bytes of the count that follows, and what it counts.
COUNTED = {0xD9: (1, _text), 0xDA: (2, _text), 0xDB: (4, _text), 0xDC: (2, _list), 0xDD: (4, _list),
           0xDE: (2, _map), 0xDF: (4, _map)}


def _value(data, at):
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first < 0x90:
        return _map(data, at, first & 15)
    if first < 0xA0:
        return _list(data, at, first & 15)
    if first < 0xC0:
        return _text(data, at, first & 31)
    if first in SIMPLE:
        return SIMPLE[first], at
    if first in COUNTED:
        size, read = COUNTED[first]
        count, at = _number(data, at, size)
        return read(data, at, count)
    if 0xCC <= first <= 0xCF:
        return _number(data, at, 1 << (first - 0xCC))
    if 0xD0 <= first <= 0xD3:
        return _number(data, at, 1 << (first - 0xD0), signed=True)
    raise ValueError(f"an unknown kind of value, {first:#x}")
