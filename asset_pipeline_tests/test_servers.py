"""The servers that other tests stand on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest

from asset_pipeline_tests import servers


def test_each_test_has_an_empty_database(postgres_url):
    connection = psycopg2.connect(postgres_url)
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        assert cursor.fetchone() == (0,)
        cursor.execute("SHOW server_version")
        assert cursor.fetchone()[0].startswith("18.")
    connection.close()


def test_each_test_has_an_empty_bucket(s3_settings, s3_server):
    listing = servers.s3_client(s3_server).list_objects_v2(Bucket=s3_settings.name)
    assert listing["KeyCount"] == 0


OWNER = """
import sys, time
from asset_pipeline_tests.servers import TestRun
run = TestRun.begin()
print(run.server(sys.argv[1]).port, run.folder, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["postgres", "s3"])
def test_a_killed_run_leaves_no_server_behind(kind):
    root = Path(servers.__file__).parents[1]
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, kind], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, stdout=-1, text=True
    )
    port, folder = owner.stdout.readline().split()
    assert not servers.port_is_free(int(port))
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    assert servers._wait(lambda: servers.port_is_free(int(port)) and not Path(folder).exists(), 30)
