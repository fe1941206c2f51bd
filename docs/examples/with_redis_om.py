"""Who has which book, with redis-om: the first page of the documentation shows it beside Keywright."""

import os

from redis_om import Field, HashModel, get_redis_connection


class Book(HashModel, index=True):
    isbn: str = Field(primary_key=True)
    reader: str = ""


redis = get_redis_connection(url=os.environ["REDIS_OM_URL"])


def lend(isbn: str, reader: str) -> None:
    before = Book.get(isbn).reader  # another process may lend it between this line and the next
    Book(isbn=isbn, reader=reader).save()
    redis.srem(f"reader:{before}:books", isbn)  # a process that dies here leaves the book in no set
    redis.sadd(f"reader:{reader}:books", isbn)


if __name__ == "__main__":
    Book(isbn="b1").save()
    lend("b1", "ann")
    lend("b1", "ben")
    print(Book.get("b1").reader, redis.smembers("reader:ann:books"), redis.smembers("reader:ben:books"))
