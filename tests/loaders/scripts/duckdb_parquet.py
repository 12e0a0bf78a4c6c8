"""Reads Parquet files with DuckDB's httpfs extension. usage: duckdb_parquet.py EPOCHS"""

import sys
import zlib

import duckdb

connection = duckdb.connect()
connection.execute("LOAD httpfs")
connection.execute("SET s3_url_style = 'path'")

for epoch in range(int(sys.argv[1])):
    samples = checksum = 0
    rows = connection.execute("SELECT image FROM 's3://data/parquet/*.parquet'")
    while batch := rows.fetchmany(16):
        for (image,) in batch:
            checksum += zlib.crc32(image)
            samples += 1
    print(f"epoch {epoch}: {samples} samples, checksum {checksum}", flush=True)
