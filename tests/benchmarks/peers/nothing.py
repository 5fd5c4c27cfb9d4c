"""The floor under every program with Spark: a session starts and ends."""


def main(spark):
    """Nothing."""


if __name__ == "__main__":
    from spark import session

    spark = session()
    main(spark)
    spark.stop()
