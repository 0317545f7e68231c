-- A workload for sqlite3: inserts, indexes, joins, sorting, grouping, windows, updates.
CREATE TABLE t(id INTEGER PRIMARY KEY, r INT, name TEXT, half REAL);
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 60000)
    INSERT INTO t SELECT i, (i * 7561) % 4099, printf('n%06x', (i * 131) % 9001), i / 2.0 FROM c;
CREATE INDEX by_r ON t(r);
CREATE INDEX by_name ON t(name);
SELECT count(*) FROM t a JOIN t b USING (r) WHERE a.id < 20000 AND b.id > 40000;
SELECT r % 13 AS k, count(*), min(name), avg(half) FROM t GROUP BY k;
SELECT name, sum(half) OVER (PARTITION BY r % 5 ORDER BY id) AS total FROM t ORDER BY total DESC LIMIT 3;
SELECT count(*) FROM t WHERE name LIKE '%a%f%' AND substr(name, 2, 3) < 'a00';
UPDATE t SET name = upper(name) WHERE r % 3 = 1;
DELETE FROM t WHERE id % 7 = 2;
SELECT count(*), sum(length(name)) FROM t;
