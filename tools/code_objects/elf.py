"""Reads 64-bit little-endian ELF files, as far as code objects need it."""
import struct


class Unreadable(Exception):
    """Raised for a file, or device code in it, that can't be read."""


class Section:
    def __init__(self, name, size, data):
        self.name, self.size, self.data = name, size, data


SHT_NOBITS = 8


class Elf:
    def __init__(self, data, name):
        if data[:6] != b"\x7fELF\x02\x01":
            raise Unreadable(f"{name}: not an ELF file of 64 bits")
        try:
            self.sections = self._read_sections(data)
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise Unreadable(f"{name}: its sections can't be read ({error})") from error

    @staticmethod
    def _read_sections(data):
        offset, = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(count)]
        at = headers[names][4] if headers else 0
        sections = []
        for header in headers:
            name = data[at + header[0]:data.index(b"\0", at + header[0])].decode()
            begin, length = header[4], header[5]
            if header[1] != SHT_NOBITS and begin + length > len(data):
                raise ValueError(f"{name} ends past the file")
            content = b"" if header[1] == SHT_NOBITS else data[begin:begin + length]
            sections.append(Section(name, length, content))
        return sections

    def section(self, name):
        """Returns the bytes of all sections of that name, one after the other."""
        return b"".join(s.data for s in self.sections if s.name == name)

    def symbols(self):
        """Returns the name of every symbol, in the table's order."""
        strings, table = self.section(".strtab"), self.section(".symtab")
        if not table:  # stripped
            strings, table = self.section(".dynstr"), self.section(".dynsym")
        found = []
        for at in range(0, len(table) - 23, 24):
            name, = struct.unpack_from("<I", table, at)
            found.append(strings[name:strings.index(b"\0", name)].decode())
        return found

    def strings(self, prefix):
        """Returns the strings of the read-only data that begin with the prefix."""
        found = set()
        for section in self.sections:
            if section.name.startswith(".rodata"):
                found.update(s.decode("latin-1") for s in section.data.split(b"\0")
                             if s.startswith(prefix))
        return found


def notes(data):
    """Yields (kind, content) for each note."""
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        at += 12 + (name_size + 3) // 4 * 4
        yield kind, data[at:at + size]
        at += (size + 3) // 4 * 4
